#include "worker/group/local_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(60);

// What a child of these tests, which is this binary, does.
TEST(Child, DISABLED_LeavesWithCode7) { _exit(7); }
TEST(Child, DISABLED_LeavesWell) { _exit(0); }
TEST(Child, DISABLED_WaitsInAProcessGroupOfItsOwn) {
  if (getpgid(0) != getpid()) _exit(1);
  pause();
}

std::unique_ptr<LocalRanks> StartRanks(
    const std::vector<std::string>& children) {
  std::vector<LocalRanks::Child> ranks;
  for (const std::string& child : children) {
    ranks.push_back(
        {.rank = static_cast<int>(ranks.size()) + 1,
         .extra_arguments = {"--gtest_filter=Child.DISABLED_" + child}});
  }
  auto started = LocalRanks::Start({"--gtest_also_run_disabled_tests"}, ranks);
  EXPECT_TRUE(started.ok()) << started.status();
  return *std::move(started);
}

TEST(LocalRanks, SaysWhichRankEndedAndHow) {
  auto ranks = StartRanks({"LeavesWell", "LeavesWithCode7"});
  EXPECT_TRUE(ranks->WaitForAll(kTimeout));
  const std::string message(ranks->Check().message());
  EXPECT_THAT(message, HasSubstr("rank 1 (process "));
  EXPECT_THAT(message, HasSubstr("ended with exit code 0"));
  EXPECT_THAT(message, HasSubstr("rank 2 (process "));
  EXPECT_THAT(message, HasSubstr("ended with exit code 7"));
}

TEST(LocalRanks, KillsWhatStillRuns) {
  auto ranks = StartRanks({"WaitsInAProcessGroupOfItsOwn"});
  EXPECT_TRUE(ranks->Check().ok());
  EXPECT_FALSE(ranks->WaitForAll(absl::Milliseconds(100)));
}

}  // namespace
}  // namespace lockstep
