#include "worker/group/peer_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// 20 beats.
constexpr PeerWatch::Options kOptions = {.interval = absl::Milliseconds(500),
                                         .timeout = absl::Seconds(10)};

v1::Heartbeat At(uint64_t step, v1::StepStage stage, uint64_t collectives = 0) {
  v1::Heartbeat heartbeat;
  heartbeat.set_step(step);
  heartbeat.set_stage(stage);
  heartbeat.set_collectives(collectives);
  return heartbeat;
}

v1::Heartbeat Overdue(v1::Heartbeat heartbeat, uint64_t step) {
  heartbeat.set_overdue_step(step);
  return heartbeat;
}

struct Verdict {
  int beats = 0;  // until it came
  GroupFailure::Cause cause;
};

// `hear` is called before each of up to `beats` beats; rank -1: none failed.
Verdict RunBeats(
    PeerWatch& watch, const v1::Heartbeat& own, int beats,
    const std::function<void()>& hear = [] {}) {
  for (int i = 1; i <= beats; ++i) {
    hear();
    if (auto cause = watch.Beat(own))
      return {.beats = i, .cause = *std::move(cause)};
  }
  return {.beats = beats, .cause = {.rank = -1, .reason = ""}};
}

TEST(PeerWatch, ASilentFollowerIsNamedWithTheLastStepsOfBoth) {
  PeerWatch leader(0, {1, 2, 3}, kOptions);
  leader.Heard(2, At(812, v1::FINISHED));
  const Verdict verdict = RunBeats(leader, At(813, v1::FINISHED), 100, [&] {
    leader.Heard(1);
    leader.Heard(3);
  });
  EXPECT_EQ(verdict.beats, 21);
  EXPECT_EQ(verdict.cause.kind, v1::SILENT);
  EXPECT_EQ(verdict.cause.ToString(),
            "rank 2 failed first: it has been silent for 10s; its last "
            "finished step is 812, that of the leader 813.");
}

TEST(PeerWatch, ASilentLeaderIsNamedByEachFollower) {
  PeerWatch follower(2, {0}, kOptions);
  follower.Heard(0, At(5, v1::EXECUTES));
  const Verdict verdict = RunBeats(follower, At(5, v1::EXECUTES), 100);
  EXPECT_EQ(verdict.beats, 21);
  EXPECT_EQ(verdict.cause.ToString(),
            "rank 0 failed first: it has been silent for 10s; its last "
            "finished step is 4, that of rank 2 4.");
}

TEST(PeerWatch, OneThatIsHeardNowAndThenIsNotSilent) {
  PeerWatch leader(0, {1}, kOptions);
  int beat = 0;
  EXPECT_EQ(RunBeats(leader, At(3, v1::FINISHED), 1000,
                     [&] {
                       if (++beat % 19 == 0)
                         leader.Heard(1, At(3, v1::FINISHED));
                     })
                .cause.rank,
            -1);
}

TEST(PeerWatch, OneThatHasLeftMayBeSilent) {
  PeerWatch leader(0, {1, 2}, kOptions);
  leader.Forget(1);
  EXPECT_EQ(RunBeats(leader, At(3, v1::FINISHED), 1000,
                     [&] { leader.Heard(2, At(3, v1::FINISHED)); })
                .cause.rank,
            -1);
}

TEST(PeerWatch, AFollowerThatLivesAndLagsIsNamed) {
  PeerWatch leader(0, {1, 2}, kOptions);
  const Verdict verdict = RunBeats(leader, At(813, v1::FINISHED), 100, [&] {
    leader.Heard(1, At(813, v1::FINISHED));
    leader.Heard(2, At(813, v1::EXECUTES));
  });
  EXPECT_EQ(verdict.beats, 21);
  EXPECT_EQ(verdict.cause.kind, v1::TOO_FAR_BEHIND);
  EXPECT_EQ(verdict.cause.ToString(),
            "rank 2 failed first: its last finished step is 812; the leader "
            "finished step 813 more than 10s ago.");
}

// However far it is behind at each moment.
TEST(PeerWatch, AFollowerThatIsBehindForLessThanTheTimeoutIsNot) {
  PeerWatch leader(0, {1}, kOptions);
  uint64_t step = 0;
  for (int i = 0; i < 1000; ++i) {
    step += 1000;
    if (step > 19'000) leader.Heard(1, At(step - 19'000, v1::FINISHED));
    if (step <= 19'000) leader.Heard(1);
    ASSERT_FALSE(leader.Beat(At(step, v1::FINISHED)).has_value());
  }
}

// Which of leader, rank 1 and rank 2 the others wait for when a step does not
// end, and who notices it.
TEST(PeerWatch, AnOverdueStepIsOfTheRankThatTheOthersWaitFor) {
  struct Case {
    const char* name;
    v1::Heartbeat own, one, two;
    int failed;
  };
  const Case kCases[] = {
      {"a follower hangs before a collective",
       Overdue(At(7, v1::EXECUTES, 57), 7), At(7, v1::EXECUTES, 57),
       At(7, v1::EXECUTES, 56), 2},
      {"a follower hangs, and another notices", At(7, v1::EXECUTES, 57),
       Overdue(At(7, v1::EXECUTES, 57), 7), At(7, v1::EXECUTES, 56), 2},
      {"the leader hangs before a collective", At(7, v1::EXECUTES, 56),
       Overdue(At(7, v1::EXECUTES, 57), 7), At(7, v1::EXECUTES, 57), 0},
      {"the leader hangs in its plan", At(7, v1::PLANS),
       Overdue(At(7, v1::WAITS_FOR_DIGEST), 7), At(7, v1::WAITS_FOR_DIGEST), 0},
      {"the leader hangs after its step", At(7, v1::FINISHED, 58),
       At(8, v1::WAITS_FOR_FRAME, 58),
       Overdue(At(8, v1::WAITS_FOR_FRAME, 58), 8), 0},
      {"a follower has not got its frame", Overdue(At(8, v1::EXECUTES, 59), 8),
       At(8, v1::WAITS_FOR_FRAME, 58), At(8, v1::EXECUTES, 59), 1},
      {"a follower still loads", Overdue(At(1, v1::EXECUTES, 1), 1),
       At(0, v1::FINISHED), At(1, v1::EXECUTES, 1), 1},
      {"all hang in the same call", At(7, v1::EXECUTES, 57),
       Overdue(At(7, v1::EXECUTES, 57), 7), At(7, v1::EXECUTES, 57), 1},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    PeerWatch leader(0, {1, 2}, kOptions);
    const Verdict verdict = RunBeats(leader, c.own, 100, [&] {
      leader.Heard(1, c.one);
      leader.Heard(2, c.two);
    });
    EXPECT_LE(verdict.beats, 5);
    EXPECT_EQ(verdict.cause.rank, c.failed) << verdict.cause.reason;
    EXPECT_EQ(verdict.cause.kind, v1::STEP_OVERDUE);
    EXPECT_THAT(verdict.cause.reason, HasSubstr("exceeds its time limit"));
  }
}

TEST(PeerWatch, AFollowerKnowsTheLeaderAlone) {
  struct Case {
    const char* name;
    v1::Heartbeat own, leader;
    int failed;
  };
  const Case kCases[] = {
      {"it hangs itself", Overdue(At(7, v1::EXECUTES, 56), 7),
       At(7, v1::EXECUTES, 57), 2},
      {"it hangs itself after the last collective",
       Overdue(At(7, v1::EXECUTES, 58), 7), At(7, v1::FINISHED, 58), 2},
      {"the leader hangs", Overdue(At(7, v1::EXECUTES, 57), 7),
       At(7, v1::EXECUTES, 56), 0},
      {"the leader hangs with its frame sent",
       Overdue(At(7, v1::WAITS_FOR_DIGEST), 7), At(6, v1::FINISHED), 0},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    PeerWatch follower(2, {0}, kOptions);
    const Verdict verdict =
        RunBeats(follower, c.own, 100, [&] { follower.Heard(0, c.leader); });
    EXPECT_LE(verdict.beats, 5);
    EXPECT_EQ(verdict.cause.rank, c.failed) << verdict.cause.reason;
  }
}

// Its link to the leader is broken: what it last heard is no place to be late.
TEST(PeerWatch, AFollowerThatReadsNoHeartbeatAnyMoreNamesItself) {
  PeerWatch follower(2, {0}, kOptions);
  follower.Heard(0, At(6, v1::EXECUTES));
  const Verdict verdict =
      RunBeats(follower, Overdue(At(7, v1::WAITS_FOR_DIGEST), 7), 100,
               [&] { follower.Heard(0); });
  EXPECT_LE(verdict.beats, 5);
  EXPECT_EQ(verdict.cause.rank, 2) << verdict.cause.reason;
}

TEST(PeerWatch, AFollowerThatCanNotTellLeavesItToTheLeaderForAWhile) {
  PeerWatch follower(2, {0}, kOptions);
  const Verdict verdict =
      RunBeats(follower, Overdue(At(7, v1::EXECUTES, 57), 7), 100,
               [&] { follower.Heard(0, At(7, v1::EXECUTES, 57)); });
  EXPECT_GT(verdict.beats, 9);
  EXPECT_EQ(verdict.cause.rank, 2);
}

// A stopped rank is found early when a step waits for it.
TEST(PeerWatch, ASilentRankIsWhatAnOverdueStepWaitsFor) {
  PeerWatch leader(0, {1, 2}, kOptions);
  leader.Heard(1, At(7, v1::EXECUTES, 57));
  const Verdict verdict =
      RunBeats(leader, Overdue(At(7, v1::EXECUTES, 57), 7), 100,
               [&] { leader.Heard(2, At(7, v1::EXECUTES, 57)); });
  EXPECT_LE(verdict.beats, 5);
  EXPECT_EQ(verdict.cause.rank, 1);
  EXPECT_EQ(verdict.cause.kind, v1::SILENT);
}

TEST(PeerWatch, AStepThatEndsAfterAllIsForgiven) {
  PeerWatch leader(0, {1}, kOptions);
  const auto hear = [&] { leader.Heard(1, At(7, v1::FINISHED)); };
  EXPECT_EQ(
      RunBeats(leader, Overdue(At(7, v1::EXECUTES), 7), 3, hear).cause.rank,
      -1);
  EXPECT_EQ(
      RunBeats(leader, Overdue(At(7, v1::FINISHED), 7), 100, hear).cause.rank,
      -1);
}

}  // namespace
}  // namespace lockstep
