#include "kernels/expert_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "kernels/expert_cases.h"
#include "kernels/simd/lanes.h"

namespace lockstep::kernels {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Le;

struct Choice {
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

Choice Choose(std::vector<float> logits, const ExpertRule& rule,
              const std::vector<float>& bias = {}) {
  Choice choice = {std::vector<int32_t>(rule.count),
                   std::vector<float>(rule.count)};
  ChooseExperts(absl::MakeSpan(logits), rule,
                bias.empty() ? nullptr : bias.data(), choice.experts.data(),
                choice.weights.data());
  return choice;
}

Choice Choose(const std::vector<float>& logits, int count, bool renormalize) {
  return Choose(logits, {.count = count, .renormalize = renormalize});
}

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

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

TEST(ChooseExperts, WeighsBySigmoids) {
  const std::vector<float> logits = {0.5f, -1, 2, 1.25f};
  const ExpertRule rule = {.count = 2, .sigmoid = true};
  const Choice choice = Choose(logits, rule);
  EXPECT_THAT(choice.experts, ElementsAre(2, 3));
  EXPECT_NEAR(choice.weights[0], Sigmoid(2), 1e-6);
  EXPECT_NEAR(choice.weights[1], Sigmoid(1.25f), 1e-6);

  const float sum = Sigmoid(2) + Sigmoid(1.25f);
  const Choice scaled =
      Choose(logits,
             {.count = 2, .sigmoid = true, .renormalize = true, .scale = 2.5f});
  EXPECT_THAT(scaled.experts, ElementsAre(2, 3));
  EXPECT_NEAR(scaled.weights[0], 2.5f * Sigmoid(2) / sum, 1e-6);
  EXPECT_NEAR(scaled.weights[1], 2.5f * Sigmoid(1.25f) / sum, 1e-6);
}

TEST(ChooseExperts, TakesTheBiasForTheChoiceAlone) {
  const Choice choice = Choose({0.5f, -1, 2, 1.25f},
                               {.count = 2, .sigmoid = true}, {0, 3, -3, 0});
  EXPECT_THAT(choice.experts, ElementsAre(1, 3));
  EXPECT_NEAR(choice.weights[0], Sigmoid(-1), 1e-6);
  EXPECT_NEAR(choice.weights[1], Sigmoid(1.25f), 1e-6);
}

// Three groups of three: the second has the best expert, but the first and the
// third have the better pairs.
TEST(ChooseExperts, TakesTheGroupsWithTheBestPairs) {
  const ExpertRule rule = {
      .count = 4, .sigmoid = true, .groups = 3, .groups_chosen = 2};
  const std::vector<float> logits = {1, 1, 0, 4, -4, -4, 2, 1, -1};
  EXPECT_THAT(Choose(logits, rule).experts, ElementsAre(6, 0, 1, 7));
  // Their biases count, too.
  EXPECT_THAT(Choose(logits, rule, {0, 0, 0, 0, 2, 2, 0, 0, 0}).experts,
              ElementsAre(4, 5, 3, 6));
}

// Even where all that is left is worse than what was left out, and negative.
TEST(ChooseExperts, NeverLeavesTheChosenGroups) {
  const ExpertRule rule = {
      .count = 3, .sigmoid = true, .groups = 2, .groups_chosen = 1};
  EXPECT_THAT(Choose({9, 9, 0, 0, 0, 0}, rule, {0, 0, -9, 0, 0, 0}).experts,
              ElementsAre(0, 1, 2));
}

TEST(ChooseExperts, TakesTheLowerNumberOfEqualScoresAndOfEqualGroups) {
  const ExpertRule rule = {
      .count = 3, .sigmoid = true, .groups = 4, .groups_chosen = 2};
  EXPECT_THAT(Choose({1, 1, 3, 3, 3, 3, 3, 3}, rule).experts,
              ElementsAre(2, 3, 4));
  EXPECT_THAT(Choose(std::vector<float>(8, 0.5f), rule).experts,
              ElementsAre(0, 1, 2));
}

// From the definition, by sorting.
std::vector<int32_t> BestOf(const ExpertCase& c) {
  const int experts = static_cast<int>(c.logits.size());
  std::vector<float> scores(experts);
  for (int i = 0; i < experts; ++i) {
    scores[i] = std::isnan(c.logits[i]) ? -INFINITY : c.logits[i];
    if (c.rule.sigmoid && scores[i] == c.logits[i]) {
      scores[i] =
          1 / (1 + Exp(0 - scores[i])) + (c.bias.empty() ? 0 : c.bias[i]);
    }
  }
  const auto better = [](const std::vector<float>& of) {
    return [&of](int a, int b) {
      return of[a] > of[b] || (of[a] == of[b] && a < b);
    };
  };
  const int size = experts / c.rule.groups;
  std::vector<float> pairs(c.rule.groups);
  std::vector<int32_t> groups(c.rule.groups), best;
  std::iota(groups.begin(), groups.end(), 0);
  for (int group : groups) {
    std::vector<float> of(scores.begin() + group * size,
                          scores.begin() + (group + 1) * size);
    std::sort(of.begin(), of.end(), std::greater<>());
    pairs[group] = of[0] + (size > 1 ? of[1] : 0);
  }
  std::sort(groups.begin(), groups.end(), better(pairs));
  groups.resize(c.rule.groups_chosen);
  for (int group : groups) {
    for (int i = 0; i < size; ++i) best.push_back(group * size + i);
  }
  std::sort(best.begin(), best.end(), better(scores));
  best.resize(c.rule.count);
  return best;
}

TEST(ChooseExperts, TakesTheBestByTheDefinition) {
  std::mt19937 random(20240517);
  for (const ExpertCase& c : AwkwardExpertCases(random)) {
    SCOPED_TRACE(c.name);
    const Choice choice = Choose(c.logits, c.rule, c.bias);
    EXPECT_EQ(choice.experts, BestOf(c));
  }
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
    const Choice by_sigmoid = Choose(logits, {.count = 2,
                                              .sigmoid = true,
                                              .renormalize = true,
                                              .groups = 2,
                                              .groups_chosen = 1});
    EXPECT_NE(by_sigmoid.experts[0], by_sigmoid.experts[1]);
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(by_sigmoid.experts[i], AllOf(Ge(0), Le(3)));
      EXPECT_FALSE(std::isnan(by_sigmoid.weights[i]));
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
