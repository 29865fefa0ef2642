#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "worker/model_spec/shard.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// All layers have experts.
ModelConfig Config() {
  ModelConfig config;
  config.num_heads = 8;
  config.num_kv_heads = 2;
  config.head_dim = 16;
  config.intermediate_size = 100;
  config.vocab_size = 512;
  config.layers.assign(2, {.has_experts = true});
  return config;
}

// Its layers have no other MLP, so that of 100 binds nothing.
TEST(Shard, CutsEveryExpert) {
  ModelConfig config = Config();
  config.experts = {.num_experts = 4,
                    .experts_per_token = 2,
                    .intermediate_size = 64,
                    .shared_intermediate_size = 256};
  RowParallelBlocks blocks = {.o = 1, .down = 32};
  const auto shard = MakeShard(config, blocks, 1, 4);
  ASSERT_TRUE(shard.ok()) << shard.status();
  EXPECT_EQ(shard->mlp.size(), 0);
  EXPECT_EQ(std::pair(shard->expert.begin, shard->expert.end),
            std::pair(16, 32));
  EXPECT_EQ(shard->expert.slice_cols, 8);
  EXPECT_EQ(std::pair(shard->shared_expert.begin, shard->shared_expert.end),
            std::pair(64, 128));
  EXPECT_THAT(IdenticalSizes(config, blocks, 1), ElementsAre(1, 2, 4, 8));
  blocks.expert_down = 32;
  EXPECT_THAT(IdenticalSizes(config, blocks, 1), ElementsAre(1));
  EXPECT_THAT(std::string(MakeShard(config, blocks, 0, 4).status().message()),
              HasSubstr("down_proj of an expert has 2 blocks of 32 columns"));
}

TEST(Shard, CutsIntoRunsOfWholeExperts) {
  ModelConfig config = Config();
  config.experts = {
      .num_experts = 5, .experts_per_token = 2, .intermediate_size = 64};
  RowParallelBlocks blocks;
  int expert = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const auto shard = MakeShard(config, blocks, rank, 3, true);
    ASSERT_TRUE(shard.ok()) << shard.status();
    EXPECT_EQ(shard->expert_begin, expert);
    EXPECT_EQ(shard->expert.size(), 64);
    EXPECT_EQ(shard->expert.slice_cols, 8);
    expert = shard->expert_end;
  }
  EXPECT_EQ(expert, 5);
  EXPECT_THAT(SumCuts(config, blocks, 3, true), ElementsAre(3, 0));
  EXPECT_THAT(SumCuts(config, blocks, 3), ElementsAre(3, 3));
  // One block: no cut but this one takes it apart.
  blocks.expert_down = 64;
  EXPECT_THAT(SumCuts(config, blocks, 8, true), ElementsAre(0, 1));
  EXPECT_THAT(SumCuts(config, blocks, 1), ElementsAre(0, 1));
  EXPECT_THAT(IdenticalSizes(config, blocks, 2, true), ElementsAre(1, 2, 4, 8));
  EXPECT_FALSE(MakeShard(config, blocks, 0, 2).ok());
}

}  // namespace
}  // namespace lockstep
