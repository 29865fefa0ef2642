#include "worker/runtime/step_watchdog.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

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
