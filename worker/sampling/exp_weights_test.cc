#include "worker/sampling/exp_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> Weights(const std::vector<float>& logits, float scale) {
  std::vector<float> weights(logits.size());
  ExpWeights(logits, MaxLogit(logits), scale, absl::MakeSpan(weights));
  return weights;
}

TEST(ExpWeightsTest, IsCloseToTheExactExponential) {
  std::vector<float> logits;
  for (int i = 0; i <= 87 * 1024; ++i) logits.push_back(-i / 1024.0f);
  const std::vector<float> weights = Weights(logits, 1);
  for (size_t i = 0; i < logits.size(); ++i) {
    const double exact = std::exp(static_cast<double>(logits[i]));
    ASSERT_NEAR(weights[i] / exact, 1, 2.5e-7) << logits[i];
    ASSERT_LE(weights[i], weights[i == 0 ? 0 : i - 1]) << logits[i];
  }
  EXPECT_EQ(weights.front(), 1);
}

TEST(ExpWeightsTest, DropsWhatIsFarBelow) {
  EXPECT_THAT(Weights({0, -87.5f, -1e30f, -kInfinity}, 1),
              ElementsAre(1, 0, 0, 0));
}

TEST(ExpWeightsTest, ScalesTheDistanceToTheLargest) {
  const std::vector<float> weights = Weights({5, 3}, 0.5f);
  EXPECT_EQ(weights[0], 1);
  EXPECT_NEAR(weights[1], std::exp(-1.0), 1e-7);
}

TEST(ExpWeightsTest, SharesBetweenEqualInfinities) {
  EXPECT_THAT(Weights({kInfinity, 1, kInfinity}, 1), ElementsAre(1, 0, 1));
  EXPECT_THAT(Weights({-kInfinity, -kInfinity}, 1), Each(1));
  EXPECT_THAT(Weights({0, -1e-30f}, kInfinity), ElementsAre(1, 0));
}

// Every element gets the same bits wherever it stands.
TEST(ExpWeightsTest, DoesNotDependOnThePlace) {
  std::vector<float> logits(101, -3.7f);
  logits[100] = 0;
  const std::vector<float> weights = Weights(logits, 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(weights[i], weights[0]);
}

TEST(MaxLogitTest, FindsTheLargestAtEveryPlaceAndSize) {
  for (int size = 1; size < 70; ++size) {
    for (int place = 0; place < size; ++place) {
      std::vector<float> logits(size, -5);
      logits[place] = -1;
      ASSERT_EQ(MaxLogit(logits), -1) << size << " " << place;
    }
  }
  EXPECT_EQ(MaxLogit({}), -kInfinity);
}

}  // namespace
}  // namespace lockstep
