#include "worker/sampling/logit_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace lockstep {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(LogitBlocks, TheBestIsTheLargestAndTheLowestIdOfTies) {
  for (int size = 1; size < 200; size += 7) {
    for (int place = 0; place < size; ++place) {
      std::vector<float> logits(size, -3);
      for (int id = place; id < size; id += 5) logits[id] = 2;
      LogitBlocks blocks(size);
      blocks.Reset(logits);
      ASSERT_EQ(blocks.best_id(), place) << size;
      ASSERT_EQ(blocks.best(), 2);
    }
  }
}

TEST(LogitBlocks, WithoutAnyNumberTheBestIsTheFirst) {
  const std::vector<float> logits = {kNan, -kInfinity, kNan};
  LogitBlocks blocks(3);
  blocks.Reset(logits);
  EXPECT_EQ(blocks.best_id(), 0);
  EXPECT_EQ(blocks.best(), -kInfinity);
  EXPECT_EQ(blocks.RankOf(2), 3);
}

TEST(LogitBlocks, FindsTheBestOfRandomRows) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<float> logits(1 + random() % 5000);
    for (float& logit : logits) {
      logit = random() % 20 == 0 ? kNan : static_cast<float>(random() % 3000);
    }
    LogitBlocks blocks(static_cast<int>(logits.size()));
    blocks.Reset(logits);
    std::vector<uint32_t> order(logits.size());
    for (uint32_t id = 0; id < order.size(); ++id) order[id] = id;
    std::sort(order.begin(), order.end(), blocks.by_logit());
    EXPECT_EQ(blocks.best_id(), order[0]);
    const size_t rank = random() % order.size();
    EXPECT_EQ(blocks.RankOf(order[rank]), rank + 1);

    const int count = 1 + static_cast<int>(random() % 40);
    const float large = blocks.LargeLogit(count);
    std::vector<uint32_t> found;
    blocks.ForEachFrom(large, [&](uint32_t id) { found.push_back(id); });
    EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
    ASSERT_GE(found.size(), std::min<size_t>(count, order.size()));
    std::sort(found.begin(), found.end(), blocks.by_logit());
    order.resize(found.size());
    EXPECT_EQ(found, order);
  }
}

TEST(LogitBlocks, LooksAtFewWhereTheBestAreSpread) {
  std::vector<float> logits(64 * 100);
  for (size_t id = 0; id < logits.size(); ++id) {
    logits[id] = static_cast<float>(id % 64 == 9 ? id : 0);
  }
  LogitBlocks blocks(static_cast<int>(logits.size()));
  blocks.Reset(logits);
  EXPECT_EQ(blocks.LargeLogit(3), 64 * 97 + 9);
  EXPECT_EQ(blocks.LargeLogit(101), -kInfinity);
}

}  // namespace
}  // namespace lockstep
