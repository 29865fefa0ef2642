#include "worker/layers/activations.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Activations, KnowTheirBytes) {
  ModelConfig config;
  config.hidden_size = 72;
  config.num_heads = 6;
  config.num_kv_heads = 3;
  config.head_dim = 16;
  config.intermediate_size = 200;
  config.vocab_size = 512;
  ModelConfig experts = config;
  experts.experts = {
      .num_experts = 4, .experts_per_token = 3, .intermediate_size = 96};
  ModelConfig normed = config;
  normed.projection_norm = true;
  for (const ModelConfig& model : {config, experts, normed}) {
    for (int rank = 0; rank < 2; ++rank) {
      const Shard shard = *MakeShard(model, {}, rank, 2);
      const Activations a(model, shard, 7);
      const size_t floats = a.hidden.size() + a.normed.size() + a.qkv.size() +
                            a.attention.size() + a.gate_up.size() +
                            a.activated.size() + a.delta.size() +
                            a.head_squares.size();
      EXPECT_EQ(Activations::Bytes(model, shard, 7), floats * sizeof(float));
    }
  }
}

}  // namespace
}  // namespace lockstep
