#include "worker/weights/tensor_table.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "worker/checkpoint/random_source.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

using Shapes = std::map<std::string, std::vector<int64_t>>;

// As GLM-4.5's: a dense layer, one with experts, and one that guesses.
ModelConfig Config() {
  ModelConfig config;
  config.architecture = "glm4moe";
  config.names.shared_expert = "mlp.shared_experts";
  config.vocab_size = 64;
  config.hidden_size = 16;
  config.intermediate_size = 48;
  config.num_layers = 2;
  config.num_guessing_layers = 1;
  config.layers = {{}, {.has_experts = true}};
  config.num_heads = config.num_kv_heads = 2;
  config.head_dim = 8;
  config.experts = {.num_experts = 4,
                    .experts_per_token = 2,
                    .intermediate_size = 8,
                    .sigmoid = true,
                    .choice_bias = true,
                    .shared_intermediate_size = 24};
  return config;
}

Shapes ShapesOf(const ModelConfig& config) {
  Shapes shapes;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    shapes[spec.name] = spec.shape;
  }
  return shapes;
}

absl::Status Check(const Shapes& shapes, const ModelConfig& config) {
  return CheckTensors(RandomSource("m", shapes), config);
}

constexpr char kBias[] = "model.layers.1.mlp.gate.e_score_correction_bias";

TEST(ExpectedTensors, HaveWhatARouterOfSigmoidsNeeds) {
  const Shapes shapes = ShapesOf(Config());
  EXPECT_THAT(
      shapes,
      AllOf(
          Contains(
              Pair("model.layers.0.mlp.up_proj.weight", ElementsAre(48, 16))),
          Contains(Pair("model.layers.1.mlp.gate.weight", ElementsAre(4, 16))),
          Contains(Pair(kBias, ElementsAre(4))),
          Contains(Pair("model.layers.1.mlp.experts.3.down_proj.weight",
                        ElementsAre(16, 8))),
          Contains(Pair("model.layers.1.mlp.shared_experts.down_proj.weight",
                        ElementsAre(16, 24)))));
  EXPECT_THAT(shapes, AllOf(Not(Contains(Key(HasSubstr("layers.0.mlp.gate.")))),
                            Not(Contains(Key(HasSubstr("shared_expert_gate")))),
                            Not(Contains(Key(HasSubstr("layers.2."))))));
}

TEST(ExpectedTensors, OfFusedProjectionsTheirBiasesAreFusedToo) {
  ModelConfig config = Config();
  config.fused_qkv = config.qkv_bias = true;
  EXPECT_THAT(ShapesOf(config),
              AllOf(Contains(Pair("model.layers.0.self_attn.qkv_proj.bias",
                                  ElementsAre(48))),
                    Not(Contains(Key(HasSubstr("q_proj"))))));
}

TEST(CheckTensors, NamesABiasThatIsMissing) {
  Shapes shapes = ShapesOf(Config());
  EXPECT_EQ(Check(shapes, Config()), absl::OkStatus());
  shapes.erase(kBias);
  EXPECT_EQ(Check(shapes, Config()), absl::InvalidArgumentError(absl::StrCat(
                                         "m: tensor ", kBias,
                                         " is missing, expected one of shape "
                                         "[4].")));
}

TEST(CheckTensors, LeavesOutLayersThatGuess) {
  Shapes shapes = ShapesOf(Config());
  for (const char* name :
       {"model.layers.2.eh_proj.weight", "blk.2.nextn.enorm.weight",
        "model.layers.2.mlp.experts.0.up_proj.weight"}) {
    shapes[name] = {2, 3};
  }
  EXPECT_EQ(Check(shapes, Config()), absl::OkStatus());
  ModelConfig config = Config();
  config.num_guessing_layers = 0;
  EXPECT_THAT(std::string(Check(shapes, config).message()),
              HasSubstr("tensor \"blk.2.nextn.enorm.weight\" is not part of a "
                        "glm4moe model of 2 layers."));
  shapes["model.layers.3.eh_proj.weight"] = {2, 3};
  EXPECT_THAT(std::string(Check(shapes, Config()).message()),
              HasSubstr("tensor \"model.layers.3.eh_proj.weight\" is not"));
}

}  // namespace
}  // namespace lockstep
