#include "worker/step_health.h"

#include <gtest/gtest.h>

#include <chrono>

#include "common/health/health_board.h"
#include "proto/group.pb.h"
#include "worker/group/step_progress.h"
#include "worker/runtime/rank_loop.h"

namespace lockstep {
namespace {

// Of a time limit that a step has not exceeded, or for which nobody has been
// blamed yet, no probe kills a rank.
TEST(StepWorkLimits, LeaveTheWatchdogItsTime) {
  for (const absl::Duration timeout :
       {absl::ZeroDuration(), absl::Seconds(1), absl::Seconds(45),
        absl::Minutes(10), absl::Hours(200)}) {
    const HealthBoard::WorkLimits limits = StepWorkLimits(timeout);
    const absl::Duration longest =
        timeout > absl::ZeroDuration() ? timeout : kMostStepTimeout;
    EXPECT_GE(limits.live, 2 * longest) << timeout;
    EXPECT_GE(limits.live, absl::Minutes(1)) << timeout;
    EXPECT_LE(limits.ready, absl::Minutes(1)) << timeout;
    EXPECT_LE(limits.ready, longest) << timeout;
  }
}

StepAge::Clock::time_point At(int seconds) {
  return StepAge::Clock::time_point(std::chrono::seconds(seconds));
}

TEST(StepAge, CountsFromTheFirstLookAtAStep) {
  StepProgress progress;
  StepAge age(&progress, /*first_step=*/3);
  EXPECT_EQ(age.Overdue(At(1)), absl::ZeroDuration());
  progress.Enter(7, v1::WAITS_FOR_FRAME);
  EXPECT_EQ(age.Overdue(At(100)), absl::ZeroDuration());
  progress.Enter(7, v1::EXECUTES);
  EXPECT_EQ(age.Overdue(At(130)), absl::Seconds(30));
  progress.Enter(8, v1::WAITS_FOR_FRAME);
  EXPECT_EQ(age.Overdue(At(140)), absl::ZeroDuration());
  EXPECT_EQ(age.Overdue(At(145)), absl::Seconds(5));
}

TEST(StepAge, NothingIsOverdueBetweenSteps) {
  StepProgress progress;
  StepAge age(&progress, /*first_step=*/3);
  progress.Enter(7, v1::EXECUTES);
  age.Overdue(At(1));
  progress.Enter(7, v1::FINISHED);
  EXPECT_EQ(age.Overdue(At(1000)), absl::ZeroDuration());
  progress.Enter(8, v1::PLANS);
  EXPECT_EQ(age.Overdue(At(2000)), absl::ZeroDuration());
}

TEST(StepAge, TheWarmUpMayTakeItsTime) {
  StepProgress progress;
  StepAge age(&progress, /*first_step=*/3);
  progress.Enter(2, v1::EXECUTES);
  age.Overdue(At(1));
  EXPECT_EQ(age.Overdue(At(200)), absl::ZeroDuration());
  progress.Enter(3, v1::EXECUTES);
  age.Overdue(At(201));
  EXPECT_EQ(age.Overdue(At(202)), absl::Seconds(1));
}

// Every rank's probe says so, the follower's as the leader's.
TEST(StepAge, AHungStepIsNeitherReadyNorLive) {
  StepProgress progress;
  StepAge age(&progress, /*first_step=*/3);
  HealthBoard board;
  board.Enter(Phase::kReady);
  StepAge::Clock::time_point now = At(0);
  board.SetWork(StepWorkLimits(absl::Seconds(40)),
                [&] { return age.Overdue(now); });
  progress.Enter(9, v1::EXECUTES);
  EXPECT_TRUE(board.report().ready);
  now = At(41);
  EXPECT_FALSE(board.report().ready);
  EXPECT_TRUE(board.report().live);
  now = At(81);
  EXPECT_FALSE(board.report().live);
  progress.Enter(9, v1::FINISHED);
  EXPECT_TRUE(board.report().ready);
}

}  // namespace
}  // namespace lockstep
