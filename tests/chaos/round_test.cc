#include "tests/chaos/round.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace lockstep::testing {
namespace {

TEST(DrawRoundsTest, TheSameSeedDrawsTheSameAndAnotherOneOthers) {
  const auto first = DrawRounds(60, 1);
  const auto again = DrawRounds(60, 1);
  const auto other = DrawRounds(60, 2);
  ASSERT_EQ(first.size(), 60);
  int equal = 0;
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(first[i].ToString(), again[i].ToString());
    EXPECT_EQ(first[i].seed, again[i].seed);
    equal += first[i].ToString() == other[i].ToString();
  }
  EXPECT_LT(equal, 60);
}

TEST(DrawRoundsTest, EachFaultHappensInEachStateBeforeOneHappensAgain) {
  std::set<std::pair<GroupFault, GroupState>> seen;
  for (const Round& round : DrawRounds(500, 3)) {
    const bool is_new = seen.insert({round.fault, round.state}).second;
    if (!is_new) break;
  }
  // Three signals in six states; what breaks a link where it can show.
  EXPECT_EQ(seen.size(), 3 * 6 + 1 + 2 * 3 + 3 * 2 + 1);
}

TEST(DrawRoundsTest, EveryFaultHappensOverEveryTransportAndToAChild) {
  std::set<std::pair<GroupFault, bool>> over;
  std::set<GroupFault> to_children;
  for (const Round& round : DrawRounds(500, 5)) {
    over.insert({round.fault, round.has_gloo});
    if (round.has_child && round.victim == 1) to_children.insert(round.fault);
  }
  EXPECT_EQ(over.size(), 2 * 10);
  for (const GroupFault signal :
       {GroupFault::kKill, GroupFault::kStop, GroupFault::kTerminate}) {
    EXPECT_TRUE(to_children.contains(signal));
  }
  // Nothing can be between the leader and its child.
  for (const GroupFault fault : to_children) {
    EXPECT_TRUE(fault < GroupFault::kRefused || fault > GroupFault::kDrop);
  }
}

TEST(DrawRoundsTest, WhatHappensToALinkHappensToAFollower) {
  for (const Round& round : DrawRounds(500, 4)) {
    EXPECT_GE(round.victim, round.fault >= GroupFault::kRefused &&
                                    round.fault <= GroupFault::kDrop
                                ? 1
                                : 0);
    EXPECT_LT(round.victim, round.size) << round.ToString();
  }
}

}  // namespace
}  // namespace lockstep::testing
