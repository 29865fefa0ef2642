#include "worker/sampling/logit_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace lockstep {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> Maxima(const LogitPasses& passes,
                          const std::vector<float>& logits) {
  std::vector<float> maxima(NumLogitBlocks(logits.size()));
  passes.block_maxima(logits, absl::MakeSpan(maxima));
  return maxima;
}

std::vector<float> Weights(const LogitPasses& passes,
                           const std::vector<float>& logits, float scale) {
  float max = -kInfinity;
  for (const float maximum : Maxima(passes, logits)) {
    max = std::max(max, maximum);
  }
  std::vector<float> weights(logits.size());
  passes.exp_weights(logits, max, scale, absl::MakeSpan(weights));
  return weights;
}

std::vector<double> Sums(const LogitPasses& passes,
                         const std::vector<float>& weights) {
  std::vector<double> sums(NumLogitBlocks(weights.size()));
  passes.block_sums(weights, absl::MakeSpan(sums));
  return sums;
}

class LogitPassesTest : public ::testing::TestWithParam<LogitPasses> {
 protected:
  const LogitPasses& passes_ = GetParam();
};

TEST_P(LogitPassesTest, HasTheBitsOfTheNarrowest) {
  const LogitPasses& narrowest = AllLogitPasses().front();
  std::mt19937 random(17);
  std::normal_distribution<float> normal(0, 20);
  for (const int size : {1, 5, 63, 64, 65, 127, 128, 1000, 4097}) {
    std::vector<float> logits(size);
    for (float& logit : logits) {
      logit = random() % 50 == 0 ? kNan : normal(random);
    }
    logits[random() % size] = -kInfinity;
    EXPECT_EQ(Maxima(passes_, logits), Maxima(narrowest, logits)) << size;
    const std::vector<float> weights = Weights(narrowest, logits, 0.7f);
    EXPECT_EQ(Weights(passes_, logits, 0.7f), weights) << size;
    EXPECT_EQ(Sums(passes_, weights), Sums(narrowest, weights)) << size;
  }
}

TEST_P(LogitPassesTest, FindsTheLargestAtEveryPlaceAndSize) {
  for (int size = 1; size < 150; ++size) {
    for (int place = 0; place < size; ++place) {
      std::vector<float> logits(size, -5);
      logits[place] = -1;
      std::vector<float> expected(NumLogitBlocks(size), -5);
      expected[place / kLogitBlock] = -1;
      ASSERT_EQ(Maxima(passes_, logits), expected) << size << " " << place;
    }
  }
}

TEST_P(LogitPassesTest, NanIsNeverTheLargest) {
  std::vector<float> logits(70, kNan);
  EXPECT_THAT(Maxima(passes_, logits), Each(-kInfinity));
  logits[3] = -7;
  EXPECT_THAT(Maxima(passes_, logits), ElementsAre(-7, -kInfinity));
}

TEST_P(LogitPassesTest, IsCloseToTheExactExponential) {
  std::vector<float> logits;
  for (int i = 0; i <= 87 * 1024; ++i) logits.push_back(-i / 1024.0f);
  const std::vector<float> weights = Weights(passes_, logits, 1);
  for (size_t i = 0; i < logits.size(); ++i) {
    const double exact = std::exp(static_cast<double>(logits[i]));
    ASSERT_NEAR(weights[i] / exact, 1, 2.5e-7) << logits[i];
    ASSERT_LE(weights[i], weights[i == 0 ? 0 : i - 1]) << logits[i];
  }
  EXPECT_EQ(weights.front(), 1);
}

TEST_P(LogitPassesTest, DropsWhatIsFarBelow) {
  EXPECT_THAT(Weights(passes_, {0, -87.5f, -1e30f, -kInfinity, kNan}, 1),
              ElementsAre(1, 0, 0, 0, 0));
}

TEST_P(LogitPassesTest, ScalesTheDistanceToTheLargest) {
  const std::vector<float> weights = Weights(passes_, {5, 3}, 0.5f);
  EXPECT_EQ(weights[0], 1);
  EXPECT_NEAR(weights[1], std::exp(-1.0), 1e-7);
}

TEST_P(LogitPassesTest, SharesBetweenEqualInfinities) {
  EXPECT_THAT(Weights(passes_, {kInfinity, 1, kInfinity}, 1),
              ElementsAre(1, 0, 1));
  EXPECT_THAT(Weights(passes_, {-kInfinity, kNan, -kInfinity}, 1), Each(1));
  EXPECT_THAT(Weights(passes_, {0, -1e-30f}, kInfinity), ElementsAre(1, 0));
}

// Every element gets the same bits wherever it stands.
TEST_P(LogitPassesTest, DoesNotDependOnThePlace) {
  std::vector<float> logits(101, -3.7f);
  logits[100] = 0;
  const std::vector<float> weights = Weights(passes_, logits, 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(weights[i], weights[0]);
}

TEST_P(LogitPassesTest, WritesWhereItReads) {
  std::vector<float> logits;
  for (int i = 0; i < 200; ++i) logits.push_back(-0.1f * i);
  const std::vector<float> weights = Weights(passes_, logits, 1);
  passes_.exp_weights(logits, 0, 1, absl::MakeSpan(logits));
  EXPECT_EQ(logits, weights);
}

TEST_P(LogitPassesTest, SumsEachBlock) {
  std::vector<float> weights;
  for (int i = 0; i < 2 * 64 + 3; ++i) weights.push_back(static_cast<float>(i));
  EXPECT_THAT(Sums(passes_, weights),
              ElementsAre(64 * 63 / 2, 64 * 64 + 64 * 63 / 2, 3 * 129));
}

INSTANTIATE_TEST_SUITE_P(Isa, LogitPassesTest,
                         ::testing::ValuesIn(AllLogitPasses().begin(),
                                             AllLogitPasses().end()),
                         [](const auto& info) { return info.param.isa; });

}  // namespace
}  // namespace lockstep
