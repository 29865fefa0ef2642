// What architectures beyond Llama's kin have in their config.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "kernels/rotary.h"
#include "kernels/simd/gate.h"
#include "tests/testing/tiny_model.h"
#include "worker/model_spec/huggingface_config.h"

namespace lockstep {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json ConfigNamed(const char* architecture) {
  json config = testing::MakeHuggingFaceConfig(testing::TinyModel());
  config["architectures"] = {architecture};
  return config;
}

json Gemma3() {
  json config = ConfigNamed("Gemma3ForCausalLM");
  config["hidden_act"] = "gelu_pytorch_tanh";
  config["num_hidden_layers"] = 7;
  config["sliding_window"] = 32;
  config["query_pre_attn_scalar"] = 64;
  config["rope_theta"] = 1e6;
  config["rope_local_base_freq"] = 5000;
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  return config;
}

TEST(HuggingFaceArchitectures, GemmaHasTwoKindsOfLayersInBothStyles) {
  json new_style = Gemma3();
  for (const char* name :
       {"rope_theta", "rope_local_base_freq", "rope_scaling"}) {
    new_style.erase(name);
  }
  new_style["rope_parameters"] = {
      {"full_attention",
       {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 1e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 5000}}}};
  for (const json& style : {Gemma3(), new_style}) {
    const auto config = ConfigFromHuggingFace(style, "config.json");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->rope.theta, 1e6f);
    EXPECT_EQ(config->rope.scaling, RopeConfig::Scaling::kLinear);
    EXPECT_EQ(config->local_rope.theta, 5000);
    EXPECT_EQ(config->local_rope.scaling, RopeConfig::Scaling::kNone);
    for (int i = 0; i < 7; ++i) {
      EXPECT_EQ(config->layers[i].window, i == 5 ? 0 : 32) << i;
      EXPECT_EQ(config->layers[i].local_rope, i != 5) << i;
    }
    EXPECT_EQ(config->gate, kernels::Gate::kGeluTanh);
    EXPECT_EQ(config->query_scale, 0.125f);
    EXPECT_EQ(config->embedding_scale, 8);
    EXPECT_TRUE(config->norm_offset);
  }
}

TEST(HuggingFaceArchitectures, ThatOfAClassWithoutAHeadIsTheSame) {
  for (const auto& [name, architecture] : {std::pair{"LlamaModel", "llama"},
                                           {"MistralModel", "mistral"},
                                           {"Qwen2Model", "qwen2"},
                                           {"Qwen3Model", "qwen3"}}) {
    const auto read = ConfigFromHuggingFace(ConfigNamed(name), "config.json");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->architecture, architecture);
  }
  json gemma = Gemma3();
  gemma["architectures"] = {"Gemma3TextModel"};
  EXPECT_TRUE(ConfigFromHuggingFace(gemma, "config.json").ok());
  for (const char* other : {"Gemma3Model", "Model", "LlamaTextModel",
                            "LlamaModelForCausalLM", "BertModel"}) {
    EXPECT_THAT(
        std::string(
            ConfigFromHuggingFace(ConfigNamed(other), "").status().message()),
        HasSubstr("which is not supported"));
  }
}

// As published for Gemma 3 4B: what its class has by default is left out.
json Gemma3WithVision() {
  return {{"architectures", {"Gemma3ForConditionalGeneration"}},
          {"eos_token_id", {1, 106}},
          {"vision_config", {{"hidden_size", 1152}}},
          {"text_config",
           {{"hidden_size", 2560},
            {"intermediate_size", 10240},
            {"model_type", "gemma3_text"},
            {"num_hidden_layers", 34},
            {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
            {"sliding_window", 1024}}}};
}

TEST(HuggingFaceArchitectures, ReadsTheTextPartOfAModelWithVision) {
  const auto read = ConfigFromHuggingFace(Gemma3WithVision(), "config.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->multimodal);
  EXPECT_TRUE(read->tied_embeddings);
  EXPECT_EQ(read->num_heads, 8);
  EXPECT_EQ(read->head_dim, 256);
  EXPECT_EQ(read->vocab_size, 262208);
  EXPECT_EQ(read->rope.theta, 1e6f);
  EXPECT_EQ(read->local_rope.theta, 10000);
  EXPECT_THAT(read->eos_token_ids, ElementsAre(1, 106));
}

TEST(HuggingFaceArchitectures, RefusesAnotherTextPartByName) {
  json config = Gemma3WithVision();
  config["text_config"]["model_type"] = "gemma4_text";
  const absl::Status status =
      ConfigFromHuggingFace(config, "config.json").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("in \"text_config\": \"model_type\" is "
                        "\"gemma4_text\", which is not supported; only "
                        "gemma3_text is"));
  config.erase("text_config");
  EXPECT_EQ(ConfigFromHuggingFace(config, "config.json").status().code(),
            absl::StatusCode::kInvalidArgument);
}

json Qwen2Moe() {
  json config = ConfigNamed("Qwen2MoeForCausalLM");
  config["num_hidden_layers"] = 5;
  config["decoder_sparse_step"] = 2;
  config["mlp_only_layers"] = {3};
  config["num_experts"] = 60;
  config["num_experts_per_tok"] = 4;
  config["moe_intermediate_size"] = 96;
  config["shared_expert_intermediate_size"] = 320;
  return config;
}

TEST(HuggingFaceArchitectures, ReadsWhichLayersHaveExperts) {
  const auto read = ConfigFromHuggingFace(Qwen2Moe(), "config.json");
  ASSERT_TRUE(read.ok()) << read.status();
  std::vector<bool> has_experts;
  for (const auto& layer : read->layers) {
    has_experts.push_back(layer.has_experts);
  }
  EXPECT_THAT(has_experts, ElementsAre(false, true, false, false, false));
  EXPECT_EQ(read->experts.num_experts, 60);
  EXPECT_EQ(read->experts.experts_per_token, 4);
  EXPECT_EQ(read->experts.intermediate_size, 96);
  EXPECT_EQ(read->experts.shared_intermediate_size, 320);
  EXPECT_FALSE(read->experts.renormalize);
  EXPECT_TRUE(read->qkv_bias);
}

TEST(HuggingFaceArchitectures, RefusesExpertsThatMakeNoSense) {
  for (const auto& [key, value] : std::vector<std::pair<const char*, json>>{
           {"num_experts_per_tok", 61},
           {"num_experts_per_tok", 0},
           {"num_experts", 0},
           {"num_experts", 1 << 20},
           {"mlp_only_layers", 3},
           {"norm_topk_prob", "yes"},
           {"shared_expert_intermediate_size", nullptr}}) {
    json config = Qwen2Moe();
    config[key] = value;
    EXPECT_EQ(ConfigFromHuggingFace(config, "config.json").status().code(),
              absl::StatusCode::kInvalidArgument)
        << key << ": " << value;
  }
}

// GLM-4.5's keys.
json Glm4Moe() {
  json config = ConfigNamed("Glm4MoeForCausalLM");
  config["num_hidden_layers"] = 4;
  config["attention_bias"] = true;
  config["use_qk_norm"] = true;
  config["n_routed_experts"] = 8;
  config["n_shared_experts"] = 2;
  config["num_experts_per_tok"] = 3;
  config["moe_intermediate_size"] = 32;
  config["first_k_dense_replace"] = 3;
  config["n_group"] = 4;
  config["topk_group"] = 2;
  config["routed_scaling_factor"] = 2.5;
  return config;
}

TEST(HuggingFaceArchitectures, Glm4MoeRoutesBySigmoids) {
  const auto read = ConfigFromHuggingFace(Glm4Moe(), "config.json");
  ASSERT_TRUE(read.ok()) << read.status();
  const ExpertsConfig& experts = read->experts;
  EXPECT_TRUE(experts.sigmoid && experts.choice_bias && experts.renormalize);
  EXPECT_EQ(experts.num_experts, 8);
  EXPECT_EQ(experts.num_groups, 4);
  EXPECT_EQ(experts.groups_per_token, 2);
  EXPECT_EQ(experts.weight_scale, 2.5f);
  EXPECT_EQ(experts.shared_intermediate_size, 64);
  EXPECT_FALSE(experts.shared_gate);
  EXPECT_FALSE(read->layers[2].has_experts);
  EXPECT_TRUE(read->layers[3].has_experts);
  EXPECT_TRUE(read->qk_norm && read->qkv_bias);
  EXPECT_EQ(read->rope.rotary_dim, 8);
  EXPECT_EQ(read->rope.style, kernels::RopeStyle::kHalves);
  EXPECT_EQ(read->num_guessing_layers, 1);
}

TEST(HuggingFaceArchitectures, Glm4MoeHasDefaults) {
  json config = Glm4Moe();
  for (const char* key : {"attention_bias", "first_k_dense_replace", "n_group",
                          "n_shared_experts", "routed_scaling_factor",
                          "topk_group", "use_qk_norm"}) {
    config.erase(key);
  }
  config["norm_topk_prob"] = false;
  const auto read = ConfigFromHuggingFace(config, "config.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->qk_norm || read->qkv_bias || read->experts.renormalize);
  EXPECT_EQ(read->experts.num_groups, 1);
  EXPECT_EQ(read->experts.groups_per_token, 1);
  EXPECT_EQ(read->experts.weight_scale, 1);
  EXPECT_EQ(read->experts.shared_intermediate_size, 0);
  EXPECT_FALSE(read->layers[0].has_experts);
  EXPECT_TRUE(read->layers[1].has_experts);
}

TEST(HuggingFaceArchitectures, Dots1TakesItsWayToScoreByName) {
  json config = Glm4Moe();
  config["architectures"] = {"Dots1ForCausalLM"};
  config["attention_bias"] = false;
  config["scoring_func"] = "noaux_tc";
  config["sliding_window"] = 4096;
  const auto read = ConfigFromHuggingFace(config, "config.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->experts.sigmoid && read->qk_norm);
  EXPECT_FALSE(read->experts.renormalize);
  EXPECT_EQ(read->rope.rotary_dim, 16);
  EXPECT_EQ(read->layers[3].window, 0);
  config["max_window_layers"] = 3;
  EXPECT_EQ(ConfigFromHuggingFace(config, "config.json")->layers[3].window,
            4096);
}

TEST(HuggingFaceArchitectures, RefusesRoutersByName) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
  struct Case {
    const char* key;
    json value;
    absl::StatusCode code;
    const char* message;
  };
  for (const auto& [key, value, code, message] : std::vector<Case>{
           {"scoring_func", "softmax", kUnimplemented, "\"scoring_func\""},
           {"topk_method", "greedy", kUnimplemented, "\"topk_method\""},
           {"moe_layer_freq", 2, kUnimplemented, "\"moe_layer_freq\""},
           {"n_routed_experts", nullptr, kInvalid, "\"n_routed_experts\""},
           {"n_shared_experts", 1 << 20, kInvalid, "\"n_shared_experts\""},
           {"routed_scaling_factor", 0, kInvalid, "above 0"},
           {"num_nextn_predict_layers", -1, kInvalid, "_predict_layers\""},
           {"n_group", 3, kInvalid,
            "in 2 of 3 groups of 8 experts, which do not divide."},
           {"n_group", 8, kInvalid, "expected at least two in each."},
           {"topk_group", 5, kInvalid, "more groups than there are."},
           {"topk_group", 1, kInvalid, "which have fewer."}}) {
    SCOPED_TRACE(message);
    json config = Glm4Moe();
    config[key] = value;
    const absl::Status status =
        ConfigFromHuggingFace(config, "config.json").status();
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  json config = Qwen2Moe();
  config["routed_scaling_factor"] = 2.5;
  EXPECT_THAT(
      std::string(
          ConfigFromHuggingFace(config, "config.json").status().message()),
      HasSubstr("\"routed_scaling_factor\""));
}

TEST(HuggingFaceArchitectures, GraniteHasItsOwnScales) {
  json config = ConfigNamed("GraniteForCausalLM");
  config["attention_multiplier"] = 0.0078125;
  config["embedding_multiplier"] = 12.0;
  config["logits_scaling"] = 16.0;
  config["residual_multiplier"] = 0.22;
  const auto read = ConfigFromHuggingFace(config, "config.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->query_scale, 0.0078125f);
  EXPECT_EQ(read->embedding_scale, 12);
  EXPECT_EQ(read->logit_divisor, 16);
  EXPECT_EQ(read->residual_scale, 0.22f);
}

TEST(HuggingFaceArchitectures, Glm4RotatesNeighboursOfAPart) {
  json config = ConfigNamed("Glm4ForCausalLM");
  const auto read = ConfigFromHuggingFace(config, "config.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rope.rotary_dim, 8);
  EXPECT_EQ(read->rope.style, kernels::RopeStyle::kNeighbours);
  EXPECT_FALSE(read->qkv_bias);
  config["attention_bias"] = true;
  EXPECT_TRUE(ConfigFromHuggingFace(config, "config.json")->qkv_bias);
}

// GLM-4-9B-chat, which has two norms a layer.
TEST(HuggingFaceArchitectures, GlmHasNoNormsOfWhatBlocksAdd) {
  json config = ConfigNamed("GlmForCausalLM");
  config.erase("attention_bias");
  const auto read = ConfigFromHuggingFace(config, "config.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rope.rotary_dim, 8);
  EXPECT_EQ(read->rope.style, kernels::RopeStyle::kNeighbours);
  EXPECT_TRUE(read->qkv_bias && read->fused_gate_up);
  EXPECT_STREQ(read->names.attention_post_norm, "");
  EXPECT_STREQ(read->names.mlp_post_norm, "");
}

}  // namespace
}  // namespace lockstep
