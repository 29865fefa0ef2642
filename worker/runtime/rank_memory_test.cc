#include "worker/runtime/rank_memory.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(CheckRankMemory, TakesWhatFitsToTheByte) {
  const RankMemory need = {
      .weight_bytes = 600, .kv_bytes = 100, .working_bytes = 300};
  EXPECT_TRUE(CheckRankMemory(1000, 1, need).ok());
  EXPECT_FALSE(CheckRankMemory(999, 1, need).ok());
  EXPECT_TRUE(CheckRankMemory(2000, 2, need).ok());
  EXPECT_FALSE(CheckRankMemory(2000, 3, need).ok());
}

TEST(CheckRankMemory, SaysWhatTakesIt) {
  const absl::Status status = CheckRankMemory(
      2000 * kMiB, 2,
      {.weight_bytes = 850 * kMiB, .kv_bytes = 0, .working_bytes = 151 * kMiB});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "the model does not fit: this host or its control group has 2000 "
            "MiB for its 2 ranks, of which each needs 850 MiB for packed "
            "weights, 0 MiB for the KV pages asked for and 151 MiB for "
            "activations, logits and positions; raise the limit, or lower "
            "--kv_cache_memory, --num_pages, --max_step_tokens or "
            "--max_context.");
}

TEST(CheckRankMemory, TakesNoSumForSmallThatHasWrappedAround) {
  EXPECT_FALSE(
      CheckRankMemory(1000, 1, {.weight_bytes = 1, .kv_bytes = INT64_MAX})
          .ok());
}

}  // namespace
}  // namespace lockstep
