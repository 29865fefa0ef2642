#include "kernels/cuda/attention_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace lockstep::cuda {
namespace {

struct Run {
  int begin;
  int end;
};

class PlannedBatch {
 public:
  explicit PlannedBatch(const std::vector<Run>& runs) {
    for (size_t s = 0; s < runs.size(); ++s) {
      for (int p = runs[s].begin; p < runs[s].end; ++p) {
        positions_.push_back(p);
        sequence_of_.push_back(s);
      }
    }
  }

  AttentionPlan Plan(int heads_per_kv_head, int window, int max_partials) {
    return PlanAttention(
        {static_cast<int>(positions_.size()), positions_.data(),
         sequence_of_.data(), heads_per_kv_head, window},
        max_partials);
  }

 private:
  std::vector<int32_t> positions_, sequence_of_;
};

TEST(AttentionPlan, FillsTilesWithTheTokensOfOneSequence) {
  const AttentionPlan plan =
      PlannedBatch({{0, 20}, {7, 8}}).Plan(/*heads_per_kv_head=*/2, 0, 0);
  ASSERT_EQ(plan.tiles.size(), 4);
  EXPECT_EQ(plan.tiles[0].num_tokens, 8);
  EXPECT_EQ(plan.tiles[1].first_token, 8);
  EXPECT_EQ(plan.tiles[2].num_tokens, 4);
  EXPECT_EQ(plan.tiles[3].first_token, 20);
  EXPECT_EQ(plan.tiles[3].num_tokens, 1);
}

TEST(AttentionPlan, AManyHeadedGroupTakesATokenATile) {
  EXPECT_EQ(AttentionPlan::TokensOf(70), 1);
  EXPECT_EQ(AttentionPlan::HeadsOf(70), kTileRows);
  EXPECT_EQ(AttentionPlan::TokensOf(5), 3);
  EXPECT_EQ(AttentionPlan::TokensOf(1), kTileRows);
}

TEST(AttentionPlan, SplitsWhatDecodesFarIntoItsContext) {
  const int position = 3 * kAttentionChunk;
  const AttentionPlan plan =
      PlannedBatch({{5, 6}, {position, position + 1}}).Plan(1, 0, 100);
  ASSERT_EQ(plan.tiles.size(), 1 + 4);
  EXPECT_EQ(plan.tiles[0].first_partial, -1);
  for (int chunk = 0; chunk < 4; ++chunk) {
    const AttentionTile& tile = plan.tiles[1 + chunk];
    EXPECT_EQ(tile.begin_chunk, chunk);
    EXPECT_EQ(tile.end_chunk, chunk + 1);
    EXPECT_EQ(tile.first_partial, chunk);
  }
  ASSERT_EQ(plan.merges.size(), 1);
  EXPECT_EQ(plan.merges[0].token, 1);
  EXPECT_EQ(plan.merges[0].num_partials, 4);
  EXPECT_EQ(plan.num_partials, 4);
}

TEST(AttentionPlan, TokensOfATileHavePartialsOfTheirOwn) {
  const AttentionPlan plan =
      PlannedBatch({{kAttentionChunk, kAttentionChunk + 3}}).Plan(1, 0, 100);
  EXPECT_EQ(plan.num_partials, 2 * 3);
  ASSERT_EQ(plan.merges.size(), 3);
  EXPECT_EQ(plan.merges[2].token, 2);
  EXPECT_EQ(plan.merges[2].first_partial, 2);
  EXPECT_EQ(plan.merges[2].step, 3);
}

TEST(AttentionPlan, SplitsNoMoreThanThereIsRoomFor) {
  const int position = 3 * kAttentionChunk;
  PlannedBatch batch({{position, position + 1}, {position, position + 1}});
  EXPECT_EQ(batch.Plan(1, 0, 8).merges.size(), 2);
  EXPECT_EQ(batch.Plan(1, 0, 7).merges.size(), 1);
  EXPECT_EQ(batch.Plan(1, 0, 3).merges.size(), 0);
}

TEST(AttentionPlan, LongPromptsAreNotSplit) {
  const AttentionPlan plan = PlannedBatch({{0, 2000}}).Plan(1, 0, 1000);
  EXPECT_EQ(plan.num_partials, 0);
  EXPECT_EQ(plan.tiles.back().end_chunk, 4);
}

TEST(AttentionPlan, ChunksBeforeTheWindowAreLeftOut) {
  const int position = 3 * kAttentionChunk;
  PlannedBatch batch({{position, position + 1}});
  EXPECT_EQ(batch.Plan(1, 1, 0).tiles[0].begin_chunk, 3);
  EXPECT_EQ(batch.Plan(1, 2, 0).tiles[0].begin_chunk, 2);
  EXPECT_EQ(batch.Plan(1, position + 2, 0).tiles[0].begin_chunk, 0);
}

}  // namespace
}  // namespace lockstep::cuda
