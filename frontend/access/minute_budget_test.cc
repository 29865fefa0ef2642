#include "frontend/access/minute_budget.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

constexpr double kTolerance = 1e-6;  // of what divides a minute

double WaitSeconds(MinuteBudget& budget, absl::Time now) {
  return absl::ToDoubleSeconds(budget.Wait(now));
}

absl::Time At(int seconds) {
  return absl::UnixEpoch() + absl::Seconds(1000 + seconds);
}

TEST(MinuteBudget, AMinutesWorthCanBeSpentAtOnceAndComesBackEvenly) {
  MinuteBudget budget;
  budget.SetRate(60);
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(budget.Wait(At(0)), absl::ZeroDuration()) << i;
    budget.Spend(1, At(0));
  }
  EXPECT_NEAR(WaitSeconds(budget, At(0)), 1, kTolerance);
  EXPECT_NEAR(WaitSeconds(budget, At(1)), 0, kTolerance);
  budget.Spend(1, At(1));
  EXPECT_NEAR(WaitSeconds(budget, At(1)), 1, kTolerance);
}

TEST(MinuteBudget, WhatIsSpentBeyondItIsPaidOffFirst) {
  MinuteBudget budget;
  budget.SetRate(60);
  budget.Spend(120, At(0));
  EXPECT_NEAR(WaitSeconds(budget, At(0)), 61, kTolerance);
  EXPECT_NEAR(WaitSeconds(budget, At(60)), 1, kTolerance);
  EXPECT_EQ(budget.Wait(At(62)), absl::ZeroDuration());
}

TEST(MinuteBudget, RestAddsUpToOneMinuteAlone) {
  MinuteBudget budget;
  budget.SetRate(2);
  budget.Spend(1, At(0));
  budget.Spend(2, At(3600));
  EXPECT_GT(budget.Wait(At(3600)), absl::ZeroDuration());
}

TEST(MinuteBudget, WithoutARateNothingIsCounted) {
  MinuteBudget budget;
  budget.Spend(1'000'000, At(0));
  EXPECT_EQ(budget.Wait(At(0)), absl::ZeroDuration());
  budget.SetRate(1);
  EXPECT_EQ(budget.Wait(At(0)), absl::ZeroDuration());
}

TEST(MinuteBudget, ANewRateCutsWhatIsLeft) {
  MinuteBudget budget;
  budget.SetRate(100);
  budget.SetRate(1);
  budget.Spend(1, At(0));
  EXPECT_NEAR(WaitSeconds(budget, At(0)), 60, kTolerance);
  budget.SetRate(60);
  EXPECT_NEAR(WaitSeconds(budget, At(0)), 1, kTolerance);
}

}  // namespace
}  // namespace lockstep
