#include "tests/integration/shrink_schedule.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace lockstep::testing {
namespace {

// Which arrive before step 0, 1, 2, ….
std::vector<Mate> Mates(int count) {
  std::vector<Mate> mates(count);
  for (int i = 0; i < count; ++i) mates[i].arrives = i;
  return mates;
}

TEST(Shrink, LeavesWhatTheFailureNeeds) {
  Schedule schedule;
  schedule.num_ranks = 4;
  schedule.seen_rank = 3;
  schedule.num_threads = 3;
  schedule.num_resumed = 2;
  schedule.mates = Mates(6);

  // Fails with two of the mates, on more than one thread.
  const Schedule shrunk = Shrink(schedule, [](const Schedule& s) {
    std::set<int> arrivals;
    for (const Mate& mate : s.mates) arrivals.insert(mate.arrives);
    return arrivals.contains(1) && arrivals.contains(4) && s.num_threads > 1;
  });

  ASSERT_EQ(shrunk.mates.size(), 2);
  EXPECT_EQ(shrunk.mates[0].arrives, 1);
  EXPECT_EQ(shrunk.mates[1].arrives, 4);
  EXPECT_EQ(shrunk.num_threads, 3);
  EXPECT_EQ(shrunk.num_ranks, 1);
  EXPECT_EQ(shrunk.seen_rank, 0);
  EXPECT_EQ(shrunk.num_resumed, 0);
}

TEST(Shrink, TriesAMateAgainWhenAnotherIsGone) {
  Schedule schedule;
  schedule.mates = Mates(4);
  // The last can go only once all others have.
  const Schedule shrunk = Shrink(schedule, [](const Schedule& s) {
    return s.mates.size() <= 1 || s.mates.back().arrives == 3;
  });
  EXPECT_TRUE(shrunk.mates.empty());
}

}  // namespace
}  // namespace lockstep::testing
