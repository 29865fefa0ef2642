#include "tests/goldens/golden_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/goldens/golden_case.h"
#include "tests/goldens/golden_runner.h"
#include "tests/goldens/tolerance.h"

namespace lockstep::goldens {
namespace {

constexpr Tolerance kTolerance = {.difference = 1e-3, .margin = 2e-3};

GoldenPrompt Prompt() {
  GoldenPrompt prompt;
  prompt.name = "p0";
  prompt.logits_rows = 2;
  prompt.logits = {1, 2, 3, 4};
  prompt.greedy = {10, 11, 12, 13};
  prompt.margins = {0.5, 0.25, 0.0001, 0.5};
  return prompt;
}

GoldenAnswer Answer() { return {{{1, 2}, {3, 4}}, {10, 11, 12, 13}}; }

TEST(GoldenComparison, FindsTheLargestDifference) {
  Comparison comparison;
  Add(Prompt(), Answer(), kTolerance, &comparison);
  EXPECT_EQ(comparison.largest_difference, 0);
  EXPECT_TRUE(Agrees(comparison, kTolerance));
  GoldenAnswer answer = Answer();
  answer.logits[1][0] = 3.5;
  Add(Prompt(), answer, kTolerance, &comparison);
  EXPECT_EQ(comparison.largest_difference, 0.5);
  EXPECT_FALSE(Agrees(comparison, kTolerance));
}

TEST(GoldenComparison, NoNumberAndNoRowAreInfinitelyFar) {
  GoldenAnswer nan = Answer();
  nan.logits[0][1] = std::numeric_limits<float>::quiet_NaN();
  GoldenAnswer missing = Answer();
  missing.logits.pop_back();
  for (const GoldenAnswer& answer : {nan, missing}) {
    Comparison comparison;
    Add(Prompt(), answer, kTolerance, &comparison);
    EXPECT_TRUE(std::isinf(comparison.largest_difference));
  }
}

TEST(GoldenComparison, AnotherIdAtATieEndsTheComparison) {
  GoldenAnswer answer = Answer();
  answer.tokens = {10, 11, 99, 98};
  Comparison comparison;
  Add(Prompt(), answer, kTolerance, &comparison);
  EXPECT_EQ(comparison.ids_equal, 2);
  EXPECT_TRUE(Agrees(comparison, kTolerance));
}

TEST(GoldenComparison, ComparesIdsBehindATieThatWentTheSameWay) {
  GoldenAnswer answer = Answer();
  answer.tokens = {10, 11, 12, 99};
  Comparison comparison;
  Add(Prompt(), answer, kTolerance, &comparison);
  EXPECT_FALSE(Agrees(comparison, kTolerance));
  ASSERT_TRUE(comparison.first_differing.has_value());
  EXPECT_EQ(comparison.first_differing->step, 3);
  EXPECT_EQ(comparison.first_differing->found, 99);
  EXPECT_EQ(comparison.first_differing->expected, 13);
}

TEST(GoldenComparison, AMissingIdDiffers) {
  GoldenAnswer answer = Answer();
  answer.tokens = {10};
  Comparison comparison;
  Add(Prompt(), answer, kTolerance, &comparison);
  ASSERT_TRUE(comparison.first_differing.has_value());
  EXPECT_EQ(comparison.first_differing->step, 1);
  EXPECT_EQ(comparison.first_differing->expected, 11);
}

TEST(GoldenComparison, ComparesLogProbabilitiesWhereThereAreNoLogits) {
  GoldenPrompt prompt = Prompt();
  prompt.logits_rows = 0;
  prompt.logits.clear();
  prompt.top_logprobs = {{1, -0.3132617f}, {0, -1.3132617f}};
  Comparison comparison;
  Add(prompt, Answer(), kTolerance, &comparison);
  EXPECT_NEAR(comparison.largest_difference, 0, 1e-6);

  prompt.top_logprobs[1].second -= 1;
  Add(prompt, Answer(), kTolerance, &comparison);
  EXPECT_NEAR(comparison.largest_difference, 1, 1e-6);
}

}  // namespace
}  // namespace lockstep::goldens
