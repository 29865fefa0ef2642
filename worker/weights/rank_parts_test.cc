#include "worker/weights/rank_parts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

// Four query heads and two key-value heads of 8 values.
ModelConfig Config(bool fused) {
  ModelConfig config;
  config.hidden_size = 16;
  config.intermediate_size = 64;
  config.vocab_size = 64;
  config.num_layers = 1;
  config.layers.resize(1);
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 8;
  config.fused_qkv = fused;
  config.qkv_bias = true;
  return config;
}

void ExpectPart(const NamedPart& part, const std::string& name, int begin,
                int count) {
  EXPECT_EQ(part.name, name);
  EXPECT_EQ(part.part.rows, 1);
  EXPECT_EQ(part.part.col_begin, begin);
  EXPECT_EQ(part.part.cols, count);
}

// The biases of a rank's rows of q, k and v, whether they are one tensor or
// three.
TEST(RankParts, BiasesAreOfTheRowsThatTheyAreAddedTo) {
  for (const bool fused : {false, true}) {
    const ModelConfig config = Config(fused);
    const Shard shard = *MakeShard(config, {}, /*rank=*/1, /*size=*/2);
    const RankParts parts(&config, &shard);
    const std::vector<NamedPart> rows = parts.Qkv(0);
    const std::vector<NamedPart> biases = parts.QkvBias(0);
    ASSERT_EQ(biases.size(), 3);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(biases[i].part.col_begin, rows[i].part.row_begin);
      EXPECT_EQ(biases[i].part.cols, rows[i].part.rows);
    }
    const std::string attention = "model.layers.0.self_attn.";
    ExpectPart(biases[0], attention + (fused ? "qkv_proj.bias" : "q_proj.bias"),
               16, 16);
    ExpectPart(biases[1], attention + (fused ? "qkv_proj.bias" : "k_proj.bias"),
               fused ? 32 + 8 : 8, 8);
    ExpectPart(biases[2], attention + (fused ? "qkv_proj.bias" : "v_proj.bias"),
               fused ? 32 + 16 + 8 : 8, 8);
  }
}

}  // namespace
}  // namespace lockstep
