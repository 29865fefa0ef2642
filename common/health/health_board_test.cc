#include "common/health/health_board.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(HealthBoard, IsReadyInOnePhaseOnly) {
  HealthBoard board;
  EXPECT_EQ(board.report().phase, Phase::kStarting);
  for (const Phase phase : {Phase::kForming, Phase::kLoading, Phase::kWarmingUp,
                            Phase::kReady, Phase::kDraining, Phase::kReady}) {
    board.Enter(phase, "why");
    EXPECT_EQ(board.report().phase, phase);
    EXPECT_EQ(board.report().detail, "why");
    EXPECT_EQ(board.report().ready, phase == Phase::kReady);
    EXPECT_TRUE(board.report().live);
  }
}

TEST(HealthBoard, AFailureIsForGoodAndNotLive) {
  HealthBoard board;
  board.Enter(Phase::kReady);
  board.Enter(Phase::kFailed, "rank 1");
  board.Enter(Phase::kReady);
  EXPECT_FALSE(board.report().live);
  EXPECT_FALSE(board.report().ready);
  EXPECT_EQ(board.report().detail, "rank 1");
}

TEST(HealthBoard, WhatIsEnteredSilentlyIsLoggedOnceByWhoWasTheFirst) {
  HealthBoard board;
  EXPECT_TRUE(board.EnterSilently(Phase::kReady));
  EXPECT_FALSE(board.EnterSilently(Phase::kReady));
  EXPECT_TRUE(board.EnterSilently(Phase::kFailed, "rank 1"));
  EXPECT_FALSE(board.EnterSilently(Phase::kFailed, "rank 2"));
  EXPECT_FALSE(board.report().live);
  EXPECT_EQ(board.report().detail, "rank 1");
}

TEST(HealthBoard, WorkThatIsOverdueIsFirstNotReadyThenNotLive) {
  HealthBoard board;
  board.Enter(Phase::kReady);
  absl::Duration overdue;
  board.SetWork({.ready = absl::Seconds(10), .live = absl::Seconds(60)},
                [&] { return overdue; });
  const struct {
    absl::Duration overdue;
    bool ready;
    bool live;
  } kCases[] = {
      {absl::ZeroDuration(), true, true}, {absl::Seconds(10), true, true},
      {absl::Seconds(11), false, true},   {absl::Seconds(60), false, true},
      {absl::Seconds(61), false, false},  {absl::ZeroDuration(), true, true}};
  for (const auto& [time, ready, live] : kCases) {
    overdue = time;
    EXPECT_EQ(board.report().ready, ready) << time;
    EXPECT_EQ(board.report().live, live) << time;
    EXPECT_EQ(board.report().detail.empty(), ready) << time;
  }
  overdue = absl::Hours(1);
  board.ClearWork();
  EXPECT_TRUE(board.report().ready);
}

TEST(HealthBoard, EachPhaseHasAName) {
  for (int phase = 0; phase <= static_cast<int>(Phase::kFailed); ++phase) {
    EXPECT_FALSE(PhaseName(static_cast<Phase>(phase)).empty()) << phase;
  }
}

}  // namespace
}  // namespace lockstep
