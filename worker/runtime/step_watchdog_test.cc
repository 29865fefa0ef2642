#include "worker/runtime/step_watchdog.h"

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

using ::testing::ElementsAre;

TEST(StepWatchdog, NamesAStepThatDoesNotEnd) {
  absl::Notification overdue;
  uint64_t overdue_step = 0;
  StepWatchdog watchdog(absl::Milliseconds(20), [&](uint64_t step) {
    overdue_step = step;
    overdue.Notify();
  });
  watchdog.BeginStep(6);
  watchdog.EndStep();
  watchdog.BeginStep(7);
  overdue.WaitForNotification();
  EXPECT_EQ(overdue_step, 7);
}

TEST(StepWatchdog, NamesAStepOnceAndGoesOnWatching) {
  absl::Notification second;
  std::vector<uint64_t> overdue;
  StepWatchdog watchdog(absl::Milliseconds(8), [&](uint64_t step) {
    overdue.push_back(step);
    if (overdue.size() == 1) {
      watchdog.EndStep();
      watchdog.BeginStep(9);
    } else {
      second.Notify();
    }
  });
  watchdog.BeginStep(7);
  second.WaitForNotification();
  EXPECT_THAT(overdue, ElementsAre(7, 9));
}

TEST(StepWatchdog, ItsLimitComesFromTheWarmUp) {
  StepWatchdog watchdog(absl::Hours(2), [](uint64_t) {});
  watchdog.SetLimitByWarmUp(
      {.steps = 2, .least = absl::Seconds(1), .multiple = 1e12});
  const auto run = [&](uint64_t step) {
    watchdog.BeginStep(step);
    watchdog.EndStep();
  };
  run(1);
  EXPECT_EQ(watchdog.limit(), absl::Hours(2));
  run(2);
  const absl::Duration limit = watchdog.limit();
  EXPECT_GT(limit, absl::Seconds(1));
  EXPECT_NE(limit, absl::Hours(2));
  run(3);
  EXPECT_EQ(watchdog.limit(), limit);
}

TEST(StepWatchdog, ItsLimitHasALeast) {
  StepWatchdog watchdog(absl::Hours(2), [](uint64_t) {});
  watchdog.SetLimitByWarmUp(
      {.steps = 1, .least = absl::Minutes(1), .multiple = 0});
  watchdog.BeginStep(1);
  watchdog.EndStep();
  EXPECT_EQ(watchdog.limit(), absl::Minutes(1));
}

// However slow the warm-up was: a rank with a cold disk or a large batch.
TEST(StepWatchdog, ItsLimitHasAMost) {
  for (const double multiple : {1e12, 1e30}) {
    StepWatchdog watchdog(absl::Hours(2), [](uint64_t) {});
    watchdog.SetLimitByWarmUp({.steps = 1,
                               .least = absl::Minutes(1),
                               .most = absl::Minutes(5),
                               .multiple = multiple});
    watchdog.BeginStep(1);
    watchdog.EndStep();
    EXPECT_EQ(watchdog.limit(), absl::Minutes(5));
  }
}

TEST(StepWatchdog, AStepOfTheWarmUpHasTheLimitOfTheWarmUp) {
  absl::Notification overdue;
  StepWatchdog watchdog(absl::Hours(2), [&](uint64_t) { overdue.Notify(); });
  watchdog.SetLimitByWarmUp({.steps = 1, .least = absl::Milliseconds(8)});
  watchdog.BeginStep(1);
  watchdog.EndStep();
  EXPECT_FALSE(overdue.HasBeenNotified());
  watchdog.BeginStep(2);
  overdue.WaitForNotification();
}

TEST(StepWatchdog, SaysNothingOfStepsThatEnd) {
  bool called = false;
  {
    StepWatchdog watchdog(absl::Hours(1), [&](uint64_t) { called = true; });
    for (uint64_t step = 1; step < 1000; ++step) {
      watchdog.BeginStep(step);
      watchdog.EndStep();
    }
  }
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace lockstep
