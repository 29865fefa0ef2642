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
  EXPECT_EQ(kind(Code::kResourceExhausted, false), FailureKind::kFull);
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
  EXPECT_TRUE(plan.OnFailure(FailureKind::kFull, kStart));
  EXPECT_TRUE(plan.OnFailure(FailureKind::kLost, kStart));
  EXPECT_FALSE(plan.OnFailure(FailureKind::kSilent, kStart));
}

TEST(RetryPlan, AGroupThatComesOrGoesTakesNoneOfThemForAWhile) {
  RetryPlan plan({}, 1);
  const auto refused_after = [&plan](int64_t ms) {
    return plan.OnFailure(FailureKind::kRefused,
                          kStart + absl::Milliseconds(ms));
  };
  for (int ms = 0; ms < 5000; ms += 100) EXPECT_TRUE(refused_after(ms));
  EXPECT_TRUE(refused_after(5000));
  EXPECT_TRUE(refused_after(5001));
  EXPECT_FALSE(refused_after(5002));
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
  const absl::Time now = kStart + absl::Seconds(4);
  EXPECT_EQ(plan.WaitsUntil(/*is_there=*/false, now),
            kStart + absl::Seconds(5));
  EXPECT_EQ(plan.WaitsUntil(/*is_there=*/true, now),
            kStart + absl::Seconds(120));
}

TEST(RetryPlan, SoDoesARequestThatFoundNone) {
  RetryPlan plan({}, 1);
  const absl::Time until = kStart + absl::Seconds(5);
  EXPECT_EQ(plan.WaitsUntil(/*is_there=*/false, kStart), until);
  // Nor does it wait longer for having looked again.
  EXPECT_EQ(plan.WaitsUntil(/*is_there=*/false, until), until);
}

TEST(RetryPlan, BeforeTheFirstTokenOnlyAGroupThatComesOrGoesIsAskedAgain) {
  const auto until = [](FailureKind kind) {
    RetryPlan plan({}, 1);
    EXPECT_TRUE(plan.OnFailure(kind, kStart));
    return plan.WaitsUntil(/*is_there=*/true, kStart);
  };
  EXPECT_EQ(until(FailureKind::kRefused), kStart + absl::Seconds(5));
  EXPECT_EQ(until(FailureKind::kLost), kStart + absl::Seconds(5));
  EXPECT_EQ(until(FailureKind::kFull), absl::InfinitePast());
  EXPECT_EQ(until(FailureKind::kSilent), absl::InfinitePast());
}

TEST(RetryPlan, TheTimeInAGroupsQueueIsNotWaitedFor) {
  RetryPlan plan({}, 1);
  EXPECT_TRUE(plan.OnFailure(FailureKind::kRefused, kStart));
  const absl::Time lost = kStart + absl::Seconds(60);
  EXPECT_TRUE(plan.OnFailure(FailureKind::kLost, lost));
  EXPECT_EQ(plan.WaitsUntil(/*is_there=*/false, lost), lost + absl::Seconds(5));
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
