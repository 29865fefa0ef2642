#include "worker/model_spec/gguf_config.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/gguf_writer.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"

namespace lockstep {
namespace {

using ::lockstep::testing::GgufWriter;
using ::lockstep::testing::MakeGguf;
using ::lockstep::testing::TinyModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<ModelConfig> Read(const std::string& bytes) {
  const auto file = GgufFile::Parse(
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()),
                          bytes.size()),
      "m.gguf");
  if (!file.ok()) return file.status();
  return ConfigFromGguf(**file);
}

TEST(GgufConfig, ReadsLlama) {
  TinyModel model;
  model.head_dim = 32;
  const auto config = Read(MakeGguf(model).Finish());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->vocab_size, 512);
  EXPECT_EQ(config->hidden_size, 64);
  EXPECT_EQ(config->intermediate_size, 128);
  EXPECT_EQ(config->num_layers, 2);
  EXPECT_EQ(config->num_heads, 8);
  EXPECT_EQ(config->num_kv_heads, 2);
  EXPECT_EQ(config->head_dim, 32);
  EXPECT_EQ(config->max_context, 512);
  EXPECT_EQ(config->norm_eps, 1e-6f);
  EXPECT_EQ(config->rope.style, kernels::RopeStyle::kNeighbours);
  EXPECT_EQ(config->rope.theta, 10000);
  EXPECT_EQ(config->rope.rotary_dim, 32);
  EXPECT_EQ(config->rope.scaling, RopeConfig::Scaling::kNone);
  EXPECT_FALSE(config->qk_norm);
  EXPECT_FALSE(config->tied_embeddings);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(2));
  EXPECT_EQ(config->bos_token_id, 1);
}

TEST(GgufConfig, ReadsQwen3WithATiedHead) {
  TinyModel model;
  model.architecture = "qwen3";
  model.tied_embeddings = true;
  GgufWriter writer = MakeGguf(model);
  writer.AddUint("tokenizer.ggml.eot_token_id", 5);
  const auto config = Read(writer.Finish());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->qk_norm);
  EXPECT_TRUE(config->tied_embeddings);
  EXPECT_EQ(config->rope.style, kernels::RopeStyle::kHalves);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(2, 5));
}

TEST(GgufConfig, FindsLlama3ScalingBehindTheFactors) {
  TinyModel model;
  model.llama3_rope = true;
  const auto config = Read(MakeGguf(model).Finish());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope.scaling, RopeConfig::Scaling::kLlama3);
  EXPECT_EQ(config->rope.factor, 8);
  EXPECT_EQ(config->rope.low_freq_factor, 1);
  EXPECT_EQ(config->rope.high_freq_factor, 4);
  EXPECT_EQ(config->rope.original_max_position, 64);
}

// Little-endian bytes of `values`.
std::string Floats(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

// The least metadata there may be, without `left_out`.
GgufWriter Minimal(const std::string& left_out = "") {
  GgufWriter writer;
  const auto add = [&](const std::string& key, uint32_t value) {
    if (key != left_out) writer.AddUint("llama." + key, value);
  };
  writer.AddString("general.architecture", "llama");
  add("block_count", 2);
  add("context_length", 512);
  add("embedding_length", 64);
  add("feed_forward_length", 128);
  add("attention.head_count", 8);
  add("vocab_size", 512);
  if (left_out != "attention.layer_norm_rms_epsilon") {
    writer.AddFloat("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  }
  return writer;
}

TEST(GgufConfig, FillsInWhatFilesLeaveOut) {
  GgufWriter writer = Minimal("vocab_size");
  writer.AddStrings("tokenizer.ggml.tokens", {"a", "b", "c"});
  const auto config = Read(writer.Finish());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->num_kv_heads, 8);
  EXPECT_EQ(config->head_dim, 8);
  EXPECT_EQ(config->rope.theta, 10000);
  EXPECT_EQ(config->vocab_size, 3);
  EXPECT_THAT(config->eos_token_ids, ElementsAre());
}

TEST(GgufConfig, BoundsAHeadSizeThatFollowsFromOthers) {
  GgufWriter writer = Minimal("embedding_length");
  writer.AddUint("llama.embedding_length", 8 * 1024);
  EXPECT_EQ(Read(writer.Finish()).status(),
            absl::InvalidArgumentError(
                "m.gguf: the head size is 1024, expected at most 512."));
}

TEST(GgufConfig, NamesTheKeyThatIsMissing) {
  for (const char* key : {"block_count", "context_length", "embedding_length",
                          "feed_forward_length", "attention.head_count",
                          "attention.layer_norm_rms_epsilon"}) {
    EXPECT_EQ(Read(Minimal(key).Finish()).status(),
              absl::NotFoundError(
                  absl::StrCat("m.gguf has no metadata \"llama.", key, "\".")));
  }
}

struct BadFile {
  std::function<void(GgufWriter&)> add;  // to the minimal file
  absl::StatusCode code;
  const char* message;
};

TEST(GgufConfig, ReadsLinearScaling) {
  GgufWriter writer = Minimal();
  writer.AddString("llama.rope.scaling.type", "linear");
  writer.AddFloat("llama.rope.scaling.factor", 4);
  const auto config = Read(writer.Finish());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope.scaling, RopeConfig::Scaling::kLinear);
  EXPECT_EQ(config->rope.factor, 4);
}

TEST(GgufConfig, ReadsYarn) {
  GgufWriter writer = Minimal();
  writer.AddString("llama.rope.scaling.type", "yarn");
  writer.AddFloat("llama.rope.scaling.factor", 4);
  writer.AddUint("llama.rope.scaling.original_context_length", 128);
  const auto config = Read(writer.Finish());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope.scaling, RopeConfig::Scaling::kYarn);
  EXPECT_EQ(config->rope.original_max_position, 128);
  EXPECT_FLOAT_EQ(config->rope.attention_factor, 1.1386294f);
}

TEST(GgufConfig, ReadsLongRope) {
  GgufWriter writer = Minimal();
  writer.AddUint("llama.rope.scaling.original_context_length", 128);
  writer.AddFloat("llama.rope.scaling.attn_factor", 1.25f);
  writer.AddTensor("rope_factors_long.weight", {4}, 0, Floats({2, 4, 8, 16}));
  writer.AddTensor("rope_factors_short.weight", {4}, 0, Floats({1, 1, 2, 3}));
  const auto config = Read(writer.Finish());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope.scaling, RopeConfig::Scaling::kLongRope);
  EXPECT_EQ(config->rope.original_max_position, 128);
  EXPECT_EQ(config->rope.attention_factor, 1.25f);
  EXPECT_THAT(config->rope.factors, ElementsAre(1, 1, 2, 3));
  EXPECT_THAT(config->rope.long_factors, ElementsAre(2, 4, 8, 16));
}

TEST(GgufConfig, RefusesByName) {
  constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const BadFile cases[] = {
      {[](GgufWriter& w) { w.AddUint("llama.expert_count", 8); },
       absl::StatusCode::kNotFound, "\"llama.expert_used_count\""},
      {[](GgufWriter& w) {
         w.AddUint("llama.expert_count", 8);
         w.AddUint("llama.expert_used_count", 9);
       },
       kInvalid, "a token goes to 9 of 8 experts"},
      {[](GgufWriter& w) { w.AddUint("llama.expert_feed_forward_length", 8); },
       kUnimplemented, "\"llama.expert_feed_forward_length\""},
      {[](GgufWriter& w) { w.AddFloat("llama.attn_logit_softcapping", 50); },
       kUnimplemented, "\"llama.attn_logit_softcapping\""},
      {[](GgufWriter& w) { w.AddUint("llama.attention.sliding_window", 4096); },
       kUnimplemented, "\"llama.attention.sliding_window\""},
      {[](GgufWriter& w) { w.AddFloat("llama.logit_scale", 0.5f); },
       kUnimplemented, "\"llama.logit_scale\""},
      {[](GgufWriter& w) { w.AddString("llama.rope.scaling.type", "su"); },
       kUnimplemented, "\"llama.rope.scaling.type\""},
      {[](GgufWriter& w) { w.AddFloat("llama.rope.scaling.attn_factor", 2); },
       kUnimplemented, "\"llama.rope.scaling.attn_factor\""},
      {[](GgufWriter& w) { w.AddFloat("llama.rope.scaling.factor", 4); },
       kUnimplemented, "\"llama.rope.scaling.factor\""},
      {[](GgufWriter& w) { w.AddBool("llama.attention.causal", false); },
       kUnimplemented, "\"llama.attention.causal\""},
      {[](GgufWriter& w) { w.AddUint("llama.attention.value_length", 16); },
       kUnimplemented, "only the size of a head, 8, is, found 16"},
      {[](GgufWriter& w) { w.AddUint("llama.rope.dimension_count", 4); },
       kUnimplemented, "\"llama.rope.dimension_count\""},
      {[](GgufWriter& w) {
         w.AddTensor("rope_freqs.weight", {4}, 0, Floats({1, 2, 3, 4}));
       },
       kUnimplemented, "the factor 1 of rope_freqs.weight is 2"},
      {[](GgufWriter& w) {
         w.AddTensor("rope_freqs.weight", {4}, 0,
                     Floats({1, 1, 1, std::nanf("")}));
       },
       kInvalid, "the last factor of rope_freqs.weight is nan"},
      {[](GgufWriter& w) {
         w.AddTensor("rope_freqs.weight", {4}, 0, Floats({0, 0, 0, 0}));
       },
       kInvalid, "the last factor of rope_freqs.weight is 0"},
      {[](GgufWriter& w) {
         w.AddTensor("rope_freqs.weight", {3}, 0, Floats({1, 1, 8}));
       },
       kInvalid, "tensor rope_freqs.weight is of ggml's type 0"},
      {[](GgufWriter& w) {
         w.AddTensor("rope_freqs.weight", {4}, 0, Floats({1, 1}));
       },
       kInvalid, "rope_freqs.weight takes 16 bytes and 8 are left"},
      {[](GgufWriter& w) {
         w.AddString("llama.rope.scaling.type", "longrope");
       },
       kInvalid, "tensor rope_factors_short.weight is missing"},
      {[](GgufWriter& w) {
         w.AddTensor("rope_factors_long.weight", {4}, 0, Floats({1, 1, 0, 1}));
         w.AddTensor("rope_factors_short.weight", {4}, 0, Floats({1, 1, 1, 1}));
       },
       kInvalid, "a factor of rope_factors_long.weight is 0"},
      {[](GgufWriter& w) {
         w.AddTensor("rope_factors_long.weight", {4}, 0, Floats({1, 1, 1, 1}));
         w.AddTensor("rope_factors_short.weight", {2}, 0, Floats({1, 1}));
       },
       kInvalid, "tensor rope_factors_short.weight is of ggml's type 0"},
      {[](GgufWriter& w) { w.AddUint("llama.attention.head_count_kv", 3); },
       kInvalid, "8 query heads are not a multiple of 3 key-value heads"},
      {[](GgufWriter& w) {
         w.AddInts("llama.attention.head_count_kv", {2, 4});
       },
       kInvalid, "is an array of integers, expected an integer"},
      {[](GgufWriter& w) { w.AddUint("llama.attention.key_length", 9); },
       kInvalid, "the head size is 9, expected an even number"},
      {[](GgufWriter& w) { w.AddUint("llama.attention.key_length", 514); },
       kInvalid, "is 514, expected an integer from 1 to 512"},
      {[](GgufWriter& w) { w.AddUint("llama.attention.key_length", 0); },
       kInvalid,
       "\"llama.attention.key_length\" is 0, expected an integer from 1"},
      {[](GgufWriter& w) { w.AddFloat("llama.rope.freq_base", 0); }, kInvalid,
       "\"llama.rope.freq_base\" is 0, expected a number above 1"},
      {[](GgufWriter& w) { w.AddUint("tokenizer.ggml.eos_token_id", 512); },
       kInvalid,
       "\"tokenizer.ggml.eos_token_id\" is 512, expected an id below "
       "512"},
  };
  for (const BadFile& bad : cases) {
    SCOPED_TRACE(bad.message);
    GgufWriter writer = Minimal();
    bad.add(writer);
    const auto config = Read(writer.Finish());
    EXPECT_EQ(config.status().code(), bad.code) << config.status();
    const std::string message(config.status().message());
    EXPECT_THAT(message, HasSubstr("m.gguf"));
    EXPECT_THAT(message, HasSubstr(bad.message));
  }
}

TEST(GgufConfig, RefusesOtherArchitecturesAndNamesTheSupportedOnes) {
  for (const char* name : {"falcon", "deepseek2", "LlamaForCausalLM"}) {
    GgufWriter writer;
    writer.AddString("general.architecture", name);
    EXPECT_EQ(Read(writer.Finish()).status(),
              absl::UnimplementedError(absl::StrCat(
                  "m.gguf holds a model of the architecture \"", name,
                  "\", which is not supported; supported are dots1 "
                  "(Dots1ForCausalLM), gemma2 (Gemma2ForCausalLM), gemma3 "
                  "(Gemma3ForCausalLM), glm (GlmForCausalLM), glm4 "
                  "(Glm4ForCausalLM), glm4moe (Glm4MoeForCausalLM), granite "
                  "(GraniteForCausalLM), llama "
                  "(LlamaForCausalLM), mistral (MistralForCausalLM), mixtral "
                  "(MixtralForCausalLM), olmo2 (Olmo2ForCausalLM), phi3 "
                  "(Phi3ForCausalLM), qwen2 (Qwen2ForCausalLM), qwen2moe "
                  "(Qwen2MoeForCausalLM), qwen3 (Qwen3ForCausalLM), qwen3moe "
                  "(Qwen3MoeForCausalLM), smollm3 (SmolLM3ForCausalLM).")));
  }
}

TEST(GgufConfig, RefusesExpertsOfAnArchitectureThatIsKnownWithoutThem) {
  GgufWriter writer;
  writer.AddString("general.architecture", "phi3");
  writer.AddUint("phi3.expert_count", 16);
  EXPECT_THAT(std::string(Read(writer.Finish()).status().message()),
              HasSubstr("the architecture \"phi3 with experts\""));
}

// GLM-4.5's keys; the last of four blocks guesses.
GgufWriter Glm4Moe() {
  GgufWriter writer;
  writer.AddString("general.architecture", "glm4moe");
  for (const auto& [key, value] : std::vector<std::pair<const char*, uint32_t>>{
           {"block_count", 4},
           {"context_length", 512},
           {"embedding_length", 64},
           {"feed_forward_length", 128},
           {"attention.head_count", 8},
           {"rope.dimension_count", 4},
           {"expert_count", 8},
           {"expert_used_count", 3},
           {"expert_feed_forward_length", 32},
           {"expert_shared_count", 2},
           {"expert_gating_func", 2},
           {"expert_group_count", 4},
           {"expert_group_used_count", 2},
           {"leading_dense_block_count", 1},
           {"nextn_predict_layers", 1},
           {"vocab_size", 512}}) {
    writer.AddUint(absl::StrCat("glm4moe.", key), value);
  }
  writer.AddFloat("glm4moe.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.AddFloat("glm4moe.expert_weights_scale", 2.5f);
  writer.AddBool("glm4moe.expert_weights_norm", true);
  return writer;
}

TEST(GgufConfig, ReadsRoutersOfSigmoids) {
  GgufWriter writer = Glm4Moe();
  const auto without_bias = Read(writer.Finish());
  writer.AddTensor("blk.1.exp_probs_b.bias", {1}, 0, "abcd");
  writer.AddTensor("blk.0.attn_q_norm.weight", {1}, 0, "abcd");
  const auto config = Read(writer.Finish());
  ASSERT_TRUE(config.ok() && without_bias.ok()) << config.status();
  EXPECT_FALSE(without_bias->experts.choice_bias || without_bias->qk_norm);
  EXPECT_TRUE(config->experts.choice_bias && config->qk_norm);
  EXPECT_TRUE(config->experts.sigmoid && config->experts.renormalize);
  EXPECT_EQ(config->experts.weight_scale, 2.5f);
  EXPECT_EQ(config->experts.num_groups, 4);
  EXPECT_EQ(config->experts.groups_per_token, 2);
  EXPECT_EQ(config->experts.shared_intermediate_size, 64);
  EXPECT_FALSE(config->experts.shared_gate);
  EXPECT_EQ(config->num_layers, 3);
  EXPECT_EQ(config->num_guessing_layers, 1);
  EXPECT_FALSE(config->layers[0].has_experts);
  EXPECT_TRUE(config->layers[1].has_experts && config->layers[2].has_experts);
  EXPECT_EQ(config->rope.rotary_dim, 4);
  EXPECT_EQ(config->rope.style, kernels::RopeStyle::kHalves);
}

// The size of a head there would be if all of the hidden state were heads.
TEST(GgufConfig, ScalesTheQueriesOfTheLargestGemma) {
  for (const int layers : {26, 62}) {
    GgufWriter writer;
    writer.AddString("general.architecture", "gemma3");
    for (const auto& [key, value] :
         std::vector<std::pair<std::string, uint32_t>>{
             {"block_count", layers},
             {"context_length", 512},
             {"embedding_length", 5376},
             {"feed_forward_length", 128},
             {"attention.head_count", 32},
             {"attention.key_length", 128},
             {"attention.value_length", 128},
             {"attention.sliding_window", 64},
             {"vocab_size", 512}}) {
      writer.AddUint("gemma3." + key, value);
    }
    writer.AddFloat("gemma3.attention.layer_norm_rms_epsilon", 1e-6f);
    writer.AddFloat("gemma3.rope.freq_base", 1e6f);
    const auto config = Read(writer.Finish());
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->query_scale, 1 / std::sqrt(layers == 62 ? 168.0f : 128));
    EXPECT_EQ(config->embedding_scale, std::sqrt(5376.0f));
    EXPECT_FALSE(config->norm_offset);
    EXPECT_EQ(config->local_rope.theta, 10000);
    for (int i = 0; i < layers; ++i) {
      const bool local = i % 6 != 5;
      EXPECT_EQ(config->layers[i].window, local ? 64 : 0) << i;
      EXPECT_EQ(config->layers[i].local_rope, local) << i;
    }
  }
}

}  // namespace
}  // namespace lockstep
