#include "frontend/routing/resilience/retry_plan.h"

#include <gtest/gtest.h>

#include "frontend/routing/resilience/retry_budget.h"

namespace lockstep {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(KindOf, EachEndOfAnAttempt) {
  const auto kind = [](absl::StatusCode code, bool was_accepted) {
    return KindOf(absl::Status(code, ""), was_accepted);
  };
  using Code = absl::StatusCode;
  EXPECT_EQ(kind(Code::kUnavailable, false), FailureKind::kRefused);
  EXPECT_EQ(kind(Code::kUnavailable, true), FailureKind::kLost);
  EXPECT_EQ(kind(Code::kResourceExhausted, false), FailureKind::kRefused);
  EXPECT_EQ(kind(Code::kResourceExhausted, true), FailureKind::kFinal);
  for (const Code code :
       {Code::kInvalidArgument, Code::kNotFound, Code::kAlreadyExists,
        Code::kDeadlineExceeded, Code::kCancelled, Code::kInternal}) {
    EXPECT_EQ(kind(code, false), FailureKind::kFinal);
    EXPECT_EQ(kind(code, true), FailureKind::kFinal);
  }
}

TEST(RetryPlan, TwoMoreTriesBeforeTheFirstToken) {
  RetryPlan plan({}, 1);
  EXPECT_TRUE(plan.OnFailure(FailureKind::kRefused, kStart));
  EXPECT_FALSE(plan.Waits(/*is_there=*/true, kStart));
  EXPECT_TRUE(plan.OnFailure(FailureKind::kLost, kStart));
  EXPECT_FALSE(plan.OnFailure(FailureKind::kRefused, kStart));
}

TEST(RetryPlan, WhatIsFinalIsNotTriedAgain) {
  RetryPlan plan({}, 1);
  EXPECT_FALSE(plan.OnFailure(FailureKind::kFinal, kStart));
  plan.OnToken();
  EXPECT_FALSE(plan.OnFailure(FailureKind::kFinal, kStart));
}

TEST(RetryPlan, AnAnswerThatGoesOnMayLoseAnyNumberOfGroups) {
  RetryPlan plan({}, 1);
  for (int i = 0; i < 100; ++i) {
    plan.OnToken();
    EXPECT_TRUE(plan.OnFailure(FailureKind::kLost, kStart));
    EXPECT_TRUE(plan.OnFailure(FailureKind::kLost, kStart));
  }
}

TEST(RetryPlan, ThreeGroupsLostWithoutATokenAreEnough) {
  RetryPlan plan({}, 1);
  plan.OnToken();
  EXPECT_TRUE(plan.OnFailure(FailureKind::kLost, kStart));
  EXPECT_TRUE(plan.OnFailure(FailureKind::kRefused, kStart));
  EXPECT_TRUE(plan.OnFailure(FailureKind::kLost, kStart));
  EXPECT_TRUE(plan.OnFailure(FailureKind::kRefused, kStart));
  EXPECT_FALSE(plan.OnFailure(FailureKind::kLost, kStart));
}

TEST(RetryPlan, AnAnswerThatHasBegunWaitsForAGroup) {
  RetryPlan plan({}, 1);
  plan.OnToken();
  EXPECT_TRUE(plan.OnFailure(FailureKind::kLost, kStart));
  EXPECT_TRUE(plan.OnFailure(FailureKind::kRefused, kStart + absl::Seconds(4)));
  EXPECT_TRUE(plan.Waits(/*is_there=*/false, kStart + absl::Seconds(4)));
  EXPECT_FALSE(plan.Waits(/*is_there=*/false, kStart + absl::Seconds(5)));
  EXPECT_TRUE(plan.Waits(/*is_there=*/true, kStart + absl::Seconds(119)));
  EXPECT_FALSE(plan.Waits(/*is_there=*/true, kStart + absl::Seconds(120)));
}

TEST(RetryPlan, DelaysAreDrawnBelowABoundThatDoubles) {
  absl::Duration sums[8];
  constexpr int kSeeds = 1000;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    RetryPlan plan({}, seed);
    for (absl::Duration& sum : sums) sum += plan.NextDelay();
    plan.OnToken();
    EXPECT_LE(plan.NextDelay(), absl::Milliseconds(50));
  }
  for (int i = 0; i < 8; ++i) {
    const double bound_ms = std::min(50 << i, 2000);
    EXPECT_NEAR(absl::ToDoubleMilliseconds(sums[i]) / kSeeds, bound_ms / 2,
                bound_ms / 20)
        << i;
  }
}

TEST(RetryBudget, ATenthOfRequestsAndWhatWasSaved) {
  RetryBudget budget({.part_of_requests = 0.125, .most_saved = 3});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(budget.Take());
  EXPECT_FALSE(budget.Take());
  for (int i = 0; i < 8; ++i) budget.OnRequest();
  EXPECT_TRUE(budget.Take());
  EXPECT_FALSE(budget.Take());
  for (int i = 0; i < 1000; ++i) budget.OnRequest();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(budget.Take());
  EXPECT_FALSE(budget.Take());
}

}  // namespace
}  // namespace lockstep
