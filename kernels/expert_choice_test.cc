#include "kernels/expert_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace lockstep::kernels {
namespace {

using ::testing::ElementsAre;

struct Choice {
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

Choice Choose(const std::vector<float>& logits, int count, bool renormalize) {
  Choice choice = {std::vector<int32_t>(count), std::vector<float>(count)};
  ChooseExperts(logits, count, renormalize, choice.experts.data(),
                choice.weights.data());
  return choice;
}

TEST(ChooseExperts, TakesTheLargestFirst) {
  EXPECT_THAT(Choose({1, 5, -2, 3}, 3, true).experts, ElementsAre(1, 3, 0));
}

TEST(ChooseExperts, TakesTheLowerNumberOfEqualOnes) {
  EXPECT_THAT(Choose({2, 7, 2, 7, 2}, 4, true).experts,
              ElementsAre(1, 3, 0, 2));
}

TEST(ChooseExperts, WeighsByTheSoftmax) {
  const std::vector<float> logits = {0.5f, -1, 2, 1.25f};
  double all = 0;
  for (const float logit : logits) all += std::exp(double{logit});
  const double chosen = std::exp(2.0) + std::exp(1.25);
  const Choice among_all = Choose(logits, 2, false);
  EXPECT_NEAR(among_all.weights[0], std::exp(2.0) / all, 1e-6);
  EXPECT_NEAR(among_all.weights[1], std::exp(1.25) / all, 1e-6);
  const Choice renormalized = Choose(logits, 2, true);
  EXPECT_NEAR(renormalized.weights[0], std::exp(2.0) / chosen, 1e-6);
  EXPECT_NEAR(renormalized.weights[1], std::exp(1.25) / chosen, 1e-6);
}

// Whatever a broken model says, its experts are there, each once.
TEST(ChooseExperts, AlwaysTakesDifferentOnes) {
  const float nan = std::nanf(""), infinity = INFINITY;
  for (const std::vector<float>& logits : {std::vector<float>(4, nan),
                                           {nan, 1, nan, 0},
                                           {-infinity, nan, -infinity, 2},
                                           {infinity, infinity, nan, 1}}) {
    const Choice choice = Choose(logits, 4, false);
    EXPECT_EQ(std::set<int32_t>(choice.experts.begin(), choice.experts.end()),
              (std::set<int32_t>{0, 1, 2, 3}));
  }
}

}  // namespace
}  // namespace lockstep::kernels
