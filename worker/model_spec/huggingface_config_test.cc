#include "worker/model_spec/huggingface_config.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/tiny_model.h"

namespace lockstep {
namespace {

using ::lockstep::testing::MakeHuggingFaceConfig;
using ::lockstep::testing::TinyModel;
using ::nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json Llama() { return MakeHuggingFaceConfig(TinyModel()); }

json Qwen3() {
  TinyModel model;
  model.architecture = "qwen3";
  json config = MakeHuggingFaceConfig(model);
  // As transformers 5 writes it.
  config.erase("rope_theta");
  config.erase("rope_scaling");
  config["rope_parameters"] = {{"rope_theta", 1e6}, {"rope_type", "default"}};
  config["layer_types"] = {"full_attention", "full_attention"};
  config["sliding_window"] = nullptr;
  config["use_sliding_window"] = false;
  return config;
}

TEST(HuggingFaceConfig, ReadsTheOldStyle) {
  const auto config = ConfigFromHuggingFace(Llama(), "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->vocab_size, 512);
  EXPECT_EQ(config->hidden_size, 64);
  EXPECT_EQ(config->intermediate_size, 128);
  EXPECT_EQ(config->num_layers, 2);
  EXPECT_EQ(config->num_heads, 8);
  EXPECT_EQ(config->num_kv_heads, 2);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_EQ(config->max_context, 512);
  EXPECT_EQ(config->norm_eps, 1e-6f);
  EXPECT_EQ(config->rope.style, kernels::RopeStyle::kHalves);
  EXPECT_EQ(config->rope.theta, 10000);
  EXPECT_EQ(config->rope.rotary_dim, 16);
  EXPECT_EQ(config->rope.scaling, RopeConfig::Scaling::kNone);
  EXPECT_FALSE(config->qk_norm);
  EXPECT_FALSE(config->tied_embeddings);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(2));
  EXPECT_EQ(config->bos_token_id, 1);
}

TEST(HuggingFaceConfig, ReadsTheNewStyle) {
  const auto config = ConfigFromHuggingFace(Qwen3(), "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "qwen3");
  EXPECT_TRUE(config->qk_norm);
  EXPECT_EQ(config->rope.theta, 1e6f);
  EXPECT_EQ(config->rope.style, kernels::RopeStyle::kHalves);
}

TEST(HuggingFaceConfig, ReadsLlama3ScalingInBothStyles) {
  const json scaling = {{"rope_type", "llama3"},
                        {"factor", 8},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 64}};
  json old_style = Llama();
  old_style["rope_scaling"] = scaling;
  json new_style = Qwen3();
  new_style["rope_parameters"] = scaling;
  new_style["rope_parameters"]["rope_theta"] = 10000.0;
  for (const json& style : {old_style, new_style}) {
    const auto config = ConfigFromHuggingFace(style, "config.json");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->rope.scaling, RopeConfig::Scaling::kLlama3);
    EXPECT_EQ(config->rope.theta, 10000);
    EXPECT_EQ(config->rope.factor, 8);
    EXPECT_EQ(config->rope.low_freq_factor, 1);
    EXPECT_EQ(config->rope.high_freq_factor, 4);
    EXPECT_EQ(config->rope.original_max_position, 64);
  }
}

TEST(HuggingFaceConfig, FillsInWhatOldFilesLeaveOut) {
  json config = Llama();
  for (const char* name :
       {"head_dim", "num_key_value_heads", "rope_theta", "rope_scaling",
        "hidden_act", "tie_word_embeddings", "bos_token_id", "eos_token_id"}) {
    config.erase(name);
  }
  const auto read = ConfigFromHuggingFace(config, "config.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->head_dim, 8);
  EXPECT_EQ(read->num_kv_heads, 8);
  EXPECT_EQ(read->rope.theta, 10000);
  EXPECT_FALSE(read->tied_embeddings);
  EXPECT_EQ(read->bos_token_id, std::nullopt);
  EXPECT_THAT(read->eos_token_ids, ElementsAre());
}

TEST(HuggingFaceConfig, MergesTheEndsOfTheGenerationConfig) {
  json file = Llama();
  file["eos_token_id"] = {2, 7};
  auto config = *ConfigFromHuggingFace(file, "config.json");
  ASSERT_TRUE(
      MergeGenerationConfig({{"eos_token_id", {7, 9}}}, "g.json", &config)
          .ok());
  EXPECT_THAT(config.eos_token_ids, ElementsAre(2, 7, 9));
  EXPECT_TRUE(MergeGenerationConfig(json::object(), "g.json", &config).ok());
  EXPECT_EQ(
      MergeGenerationConfig({{"eos_token_id", 512}}, "g.json", &config),
      absl::InvalidArgumentError("g.json: \"eos_token_id\" is 512, expected an "
                                 "id below 512 or a list of them."));
}

TEST(HuggingFaceConfig, OptionsThatAreOffAreFine) {
  json config = Llama();
  config["mlp_bias"] = false;
  config["quantization_config"] = nullptr;
  config["sliding_window"] = 4096;
  config["use_sliding_window"] = false;
  config["partial_rotary_factor"] = 1.0;
  const auto read = ConfigFromHuggingFace(config, "config.json");
  EXPECT_TRUE(read.ok()) << read.status();
}

json Qwen2(std::vector<const char*> layer_types = {}) {
  json config = Llama();
  config["architectures"] = {"Qwen2ForCausalLM"};
  config["sliding_window"] = 100;
  config["max_window_layers"] = 1;
  if (!layer_types.empty()) config["layer_types"] = layer_types;
  return config;
}

std::vector<int> WindowsOf(const json& config) {
  const auto read = ConfigFromHuggingFace(config, "config.json");
  EXPECT_TRUE(read.ok()) << read.status();
  std::vector<int> windows;
  for (const LayerConfig& layer : read->layers) {
    windows.push_back(layer.window);
  }
  return windows;
}

TEST(HuggingFaceConfig, ReadsWhichLayersSeeAWindow) {
  json config = Qwen2();
  EXPECT_THAT(WindowsOf(config), ElementsAre(0, 0));
  config["use_sliding_window"] = true;
  EXPECT_THAT(WindowsOf(config), ElementsAre(0, 100));
  config = Qwen2({"sliding_attention", "full_attention"});
  config["use_sliding_window"] = true;
  EXPECT_THAT(WindowsOf(config), ElementsAre(100, 0));
  config["architectures"] = {"MistralForCausalLM"};
  config.erase("layer_types");
  config.erase("max_window_layers");
  EXPECT_THAT(WindowsOf(config), ElementsAre(100, 100));
  config["sliding_window"] = nullptr;
  EXPECT_THAT(WindowsOf(config), ElementsAre(0, 0));
}

TEST(HuggingFaceConfig, ReadsWhichLayersRotate) {
  json config = Llama();
  config["architectures"] = {"SmolLM3ForCausalLM"};
  config["num_hidden_layers"] = 5;
  const auto rotate = [&config] {
    const auto read = ConfigFromHuggingFace(config, "config.json");
    EXPECT_TRUE(read.ok()) << read.status();
    std::vector<bool> has_rope;
    for (const auto& layer : read->layers) {
      has_rope.push_back(layer.has_rope);
    }
    return has_rope;
  };
  EXPECT_THAT(rotate(), ElementsAre(true, true, true, false, true));
  config["no_rope_layer_interval"] = 2;
  EXPECT_THAT(rotate(), ElementsAre(true, false, true, false, true));
  config["no_rope_layers"] = {1, 1, 1, 1, 0};
  EXPECT_THAT(rotate(), ElementsAre(true, true, true, true, false));
}

TEST(HuggingFaceConfig, ReadsYarn) {
  json config = Llama();
  config["rope_scaling"] = {{"rope_type", "yarn"},
                            {"factor", 4.0},
                            {"original_max_position_embeddings", 128}};
  const auto read = ConfigFromHuggingFace(config, "config.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rope.scaling, RopeConfig::Scaling::kYarn);
  EXPECT_EQ(read->rope.original_max_position, 128);
  EXPECT_FLOAT_EQ(read->rope.attention_factor, 1.1386294f);
}

TEST(HuggingFaceConfig, ReadsDynamic) {
  json config = Llama();
  config["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2.5}};
  const auto read = ConfigFromHuggingFace(config, "config.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rope.scaling, RopeConfig::Scaling::kDynamic);
  EXPECT_EQ(read->rope.factor, 2.5f);
  EXPECT_EQ(read->rope.original_max_position, 512);
  EXPECT_EQ(read->max_context, 1280);
}

json Longrope() {
  json config = Llama();
  config["head_dim"] = 4;
  config["rope_scaling"] = {{"type", "longrope"},
                            {"short_factor", {1.0, 1.5}},
                            {"long_factor", {2, 32.5}}};
  config["original_max_position_embeddings"] = 128;
  return config;
}

TEST(HuggingFaceConfig, ReadsLongRope) {
  json config = Longrope();
  for (const char* type : {"longrope", "su"}) {
    config["rope_scaling"]["type"] = type;
    const auto read = ConfigFromHuggingFace(config, "config.json");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->rope.scaling, RopeConfig::Scaling::kLongRope);
    EXPECT_THAT(read->rope.factors, ElementsAre(1.0f, 1.5f));
    EXPECT_THAT(read->rope.long_factors, ElementsAre(2.0f, 32.5f));
    EXPECT_EQ(read->rope.original_max_position, 128);
    EXPECT_EQ(read->max_context, 512);
    // √(1 + ln 4 / ln 128)
    EXPECT_FLOAT_EQ(read->rope.attention_factor, 1.1338934f);
  }
}

// The original context beside the scaling counts before that inside.
TEST(HuggingFaceConfig, ReadsLongRopeThatSaysMore) {
  json config = Longrope();
  config["rope_scaling"]["original_max_position_embeddings"] = 64;
  config["rope_scaling"]["factor"] = 16.0;
  EXPECT_EQ(ConfigFromHuggingFace(config, "m")->rope.original_max_position,
            128);
  config.erase("original_max_position_embeddings");
  const auto read = ConfigFromHuggingFace(config, "m");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rope.original_max_position, 64);
  // √(1 + ln 16 / ln 64)
  EXPECT_FLOAT_EQ(read->rope.attention_factor, 1.2909944f);
  config["rope_scaling"]["attention_factor"] = 1.25;
  EXPECT_EQ(ConfigFromHuggingFace(config, "m")->rope.attention_factor, 1.25f);
}

TEST(HuggingFaceConfig, YarnStretchesTheContext) {
  json config = Llama();
  config["max_position_embeddings"] = 256;
  config["rope_scaling"] = {{"rope_type", "yarn"},
                            {"factor", 4.0},
                            {"original_max_position_embeddings", 128}};
  EXPECT_EQ(ConfigFromHuggingFace(config, "config.json")->max_context, 512);
  config["max_position_embeddings"] = 1024;
  EXPECT_EQ(ConfigFromHuggingFace(config, "config.json")->max_context, 1024);
}

// A config in which `key` is `value`, and what is said about it.
struct BadConfig {
  const char* key;
  json value;
  const char* message;
};

void ExpectRefused(const json& good, const BadConfig& bad,
                   absl::StatusCode code) {
  SCOPED_TRACE(absl::StrCat(bad.key, ": ", bad.value.dump()));
  json config = good;
  config[bad.key] = bad.value;
  const auto read = ConfigFromHuggingFace(config, "m/config.json");
  EXPECT_EQ(read.status().code(), code) << read.status();
  const std::string message(read.status().message());
  EXPECT_THAT(message, HasSubstr("m/config.json"));
  EXPECT_THAT(message, HasSubstr(bad.message));
}

TEST(HuggingFaceConfig, RefusesWhatIsNotSupportedByName) {
  const char* const supported =
      "qwen2 (Qwen2ForCausalLM), qwen2moe (Qwen2MoeForCausalLM), qwen3 "
      "(Qwen3ForCausalLM)";
  const BadConfig cases[] = {
      {"architectures", {"FalconForCausalLM"}, "\"FalconForCausalLM\""},
      {"architectures", {"LlamaForMaskedLM"}, supported},
      {"architectures", {"llama"}, supported},
      {"attention_bias", true, "\"attention_bias\" is true, which is not"},
      {"mlp_bias", true, "\"mlp_bias\""},
      {"is_causal", false, "only true is"},
      {"hidden_act", "gelu",
       "\"hidden_act\" is \"gelu\", which is not "
       "supported; only silu is"},
      {"sliding_window", 4096, "\"sliding_window\" is 4096"},
      {"layer_types",
       {"full_attention", "sliding_attention"},
       "\"layer_types\""},
      {"partial_rotary_factor", 0.5, "\"partial_rotary_factor\" is 0.5"},
      {"num_local_experts", 8, "\"num_local_experts\""},
      {"final_logit_softcapping", 30.0, "\"final_logit_softcapping\""},
      {"rope_scaling",
       {{"type", "proportional"}, {"factor", 2.0}},
       "in \"rope_scaling\": \"type\" is \"proportional\", which is not "
       "supported; default, dynamic, linear, llama3, longrope and yarn are"},
      {"rope_scaling",
       {{"type", "dynamic"}, {"alpha", 1000.0}},
       "in \"rope_scaling\": \"alpha\" is 1000.0"},
      {"rope_scaling",
       {{"type", "longrope"}, {"short_mscale", 1.2}},
       "in \"rope_scaling\": \"short_mscale\" is 1.2"},
      {"rope_scaling",
       {{"type", "yarn"}, {"factor", 2.0}, {"long_factor", {2.0}}},
       "in \"rope_scaling\": \"long_factor\" is a list"},
      {"rope_scaling",
       {{"rope_type", "yarn"}, {"factor", 2.0}, {"mscale", 0.7}},
       "in \"rope_scaling\": \"mscale\" is 0.7"},
      {"rope_parameters",
       {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}},
       "in \"rope_parameters\": \"partial_rotary_factor\" is 0.5"},
  };
  for (const BadConfig& bad : cases) {
    ExpectRefused(Llama(), bad, absl::StatusCode::kUnimplemented);
  }
}

TEST(HuggingFaceConfig, RefusesWhatMakesNoSenseByName) {
  const BadConfig cases[] = {
      {"architectures", json::array(), "\"architectures\" is an empty list"},
      {"architectures", "LlamaForCausalLM", "expected a list of one name"},
      {"architectures", nullptr, "\"architectures\" is missing"},
      {"vocab_size", nullptr,
       "\"vocab_size\" is missing, expected an integer from 1 to 4194304"},
      {"vocab_size", 0, "\"vocab_size\" is 0"},
      {"vocab_size", 1e3, "\"vocab_size\" is 1000.0, expected an integer"},
      {"hidden_size", -64, "\"hidden_size\" is -64"},
      {"hidden_size", "64", "\"hidden_size\" is \"64\""},
      {"intermediate_size", 1 << 30, "\"intermediate_size\" is 1073741824"},
      {"num_hidden_layers", 18446744073709551615u, "\"num_hidden_layers\""},
      {"num_attention_heads", true, "\"num_attention_heads\" is true"},
      {"num_key_value_heads", 3,
       "8 query heads are not a multiple of 3 key-value heads"},
      {"head_dim", 514, "\"head_dim\" is 514"},
      {"head_dim", 15, "the head size is 15, expected an even number"},
      {"max_position_embeddings", json::object(),
       "\"max_position_embeddings\" is an object"},
      {"rms_norm_eps", 0, "\"rms_norm_eps\" is 0, expected a number above 0"},
      {"rms_norm_eps", 1e-50, "expected a number above 0"},
      {"rms_norm_eps", nullptr, "\"rms_norm_eps\" is missing"},
      {"rope_theta", -1, "\"rope_theta\" is -1"},
      {"rope_scaling", 2, "\"rope_scaling\" is 2, expected an object"},
      {"rope_scaling", {{"factor", 2}}, "\"rope_type\" is missing"},
      {"rope_scaling",
       {{"rope_type", "llama3"}, {"factor", 8}},
       "in \"rope_scaling\": \"low_freq_factor\" is missing"},
      {"rope_scaling",
       {{"rope_type", "longrope"}},
       "in \"rope_scaling\": \"short_factor\" is missing, expected a list of 8 "
       "numbers above 0 and up to 10000, one for each pair that rotates"},
      {"rope_scaling",
       {{"rope_type", "longrope"}, {"short_factor", {1, 1, 1, 1, 1, 1, 1}}},
       "\"short_factor\" is a list, expected a list of 8"},
      {"rope_scaling",
       {{"rope_type", "longrope"}, {"short_factor", {1, 1, 1, 1, 1, 1, 1, 0}}},
       "\"short_factor\" is a list, expected a list of 8 numbers above 0"},
      {"rope_scaling",
       {{"rope_type", "longrope"}, {"original_max_position_embeddings", 1}},
       "\"original_max_position_embeddings\" is 1, expected an integer from 2"},
      {"rope_scaling",
       {{"rope_type", "dynamic"}, {"factor", -1}},
       "\"factor\" is -1"},
      // A set for each kind of layer.
      {"rope_parameters",
       {{"full_attention", {{"rope_type", "default"}}}},
       "in \"rope_parameters\": \"rope_type\" is missing"},
      {"tie_word_embeddings", "yes", "\"tie_word_embeddings\" is \"yes\""},
      {"eos_token_id", 512, "\"eos_token_id\" is 512"},
      {"eos_token_id", {2, -1}, "\"eos_token_id\" is a list"},
      {"eos_token_id", 18446744073709551615u, "\"eos_token_id\""},
      {"bos_token_id", 512, "\"bos_token_id\" is 512"},
  };
  for (const BadConfig& bad : cases) {
    ExpectRefused(Llama(), bad, absl::StatusCode::kInvalidArgument);
  }
}

TEST(HuggingFaceConfig, RefusesJsonThatIsNoObject) {
  for (const json& config : {json(), json(3), json::array()}) {
    const auto read = ConfigFromHuggingFace(config, "m/config.json");
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace lockstep
