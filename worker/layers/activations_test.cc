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
  for (int rank = 0; rank < 2; ++rank) {
    const Shard shard = *MakeShard(config, {}, rank, 2);
    const Activations a(config, shard, 7);
    const size_t floats = a.hidden.size() + a.normed.size() + a.qkv.size() +
                          a.attention.size() + a.gate_up.size() +
                          a.activated.size() + a.delta.size();
    EXPECT_EQ(Activations::Bytes(config, shard, 7), floats * sizeof(float));
  }
}

}  // namespace
}  // namespace lockstep
