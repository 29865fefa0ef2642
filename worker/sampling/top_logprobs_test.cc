#include "worker/sampling/top_logprobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace lockstep {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<uint32_t> Ids(const v1::PositionLogprobs& logprobs) {
  std::vector<uint32_t> ids;
  for (const auto& top : logprobs.top()) ids.push_back(top.token_id());
  return ids;
}

TEST(TopLogprobsTest, RanksTiesByLowerId) {
  TopLogprobs top(6);
  const std::vector<float> logits = {1, 3, 1, 3, 0, 1};
  const v1::PositionLogprobs logprobs = top.Of(logits, 2, 4);
  EXPECT_EQ(logprobs.token().token_id(), 2);
  EXPECT_EQ(logprobs.token().rank(), 4);
  EXPECT_THAT(Ids(logprobs), ::testing::ElementsAre(1, 3, 0, 2));
  EXPECT_EQ(logprobs.top(0).rank(), 1);
  EXPECT_EQ(logprobs.top(3).rank(), 4);
  EXPECT_EQ(logprobs.top(3).logprob(), logprobs.token().logprob());
}

TEST(TopLogprobsTest, AgreesWithSortingEverything) {
  constexpr int kSize = 1000;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<float> logits(kSize);
    // Few values, so that there are ties.
    for (float& logit : logits) {
      logit = static_cast<float>(static_cast<int>(random() % 40)) / 4;
    }
    std::vector<uint32_t> order(kSize);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return logits[a] > logits[b];
    });
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit});
    const int k = static_cast<int>(random() % 21);
    const uint32_t rank = random() % kSize;
    TopLogprobs top(kSize);
    const v1::PositionLogprobs logprobs = top.Of(logits, order[rank], k);
    EXPECT_EQ(logprobs.token().rank(), rank + 1);
    EXPECT_NEAR(logprobs.token().logprob(), logits[order[rank]] - std::log(sum),
                2e-6);
    EXPECT_EQ(Ids(logprobs),
              std::vector<uint32_t>(order.begin(), order.begin() + k));
    for (const auto& entry : logprobs.top()) {
      EXPECT_NEAR(entry.logprob(), logits[entry.token_id()] - std::log(sum),
                  2e-6);
    }
  }
}

TEST(TopLogprobsTest, HasNoMoreEntriesThanIds) {
  TopLogprobs top(3);
  const std::vector<float> logits = {0, 0, 0};
  EXPECT_EQ(top.Of(logits, 0, 20).top_size(), 3);
  EXPECT_EQ(top.Of(logits, 0, 0).top_size(), 0);
}

TEST(TopLogprobsTest, InfinitiesAreNoNan) {
  TopLogprobs top(3);
  const std::vector<float> high = {kInfinity, 0, kInfinity};
  EXPECT_NEAR(top.Of(high, 0, 3).token().logprob(), std::log(0.5), 1e-6);
  EXPECT_EQ(top.Of(high, 1, 3).token().logprob(), -kInfinity);
  const std::vector<float> low = {0, -kInfinity, -kInfinity};
  EXPECT_EQ(top.Of(low, 0, 3).token().logprob(), 0);
  EXPECT_EQ(top.Of(low, 2, 3).token().logprob(), -kInfinity);
  const std::vector<float> none(3, -kInfinity);
  EXPECT_NEAR(top.Of(none, 1, 3).token().logprob(), -std::log(3.0), 1e-6);
}

}  // namespace
}  // namespace lockstep
