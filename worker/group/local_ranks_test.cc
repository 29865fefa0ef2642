#include "worker/group/local_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(60);

std::unique_ptr<LocalRanks> StartRanks(
    const std::vector<std::string>& children) {
  std::vector<LocalRanks::Child> ranks;
  for (const std::string& child : children) {
    ranks.push_back({.rank = static_cast<int>(ranks.size()) + 1,
                     .extra_arguments = {child}});
  }
  auto started = LocalRanks::Start({"--as_child"}, ranks);
  EXPECT_TRUE(started.ok()) << started.status();
  return *std::move(started);
}

TEST(LocalRanks, SaysWhichRankEndedAndHow) {
  auto ranks = StartRanks({"leave_well", "leave_with_code_7"});
  EXPECT_TRUE(ranks->WaitForAll(kTimeout));
  const std::string message(ranks->Check().message());
  EXPECT_THAT(message, HasSubstr("rank 1 (process "));
  EXPECT_THAT(message, HasSubstr("ended with exit code 0"));
  EXPECT_THAT(message, HasSubstr("rank 2 (process "));
  EXPECT_THAT(message, HasSubstr("ended with exit code 7"));
}

TEST(LocalRanks, AnEndThatNobodySawIsNoGoodOne) {
  signal(SIGCHLD, SIG_IGN);
  auto ranks = StartRanks({"leave_with_code_7"});
  EXPECT_TRUE(ranks->WaitForAll(kTimeout));
  signal(SIGCHLD, SIG_DFL);
  EXPECT_THAT(std::string(ranks->Check().message()),
              HasSubstr("ended, nobody knows with what exit code"));
}

TEST(LocalRanks, KillsWhatStillRuns) {
  auto ranks = StartRanks({"stay_in_own_process_group"});
  EXPECT_TRUE(ranks->Check().ok());
  EXPECT_FALSE(ranks->WaitForAll(absl::Milliseconds(100)));
}

// What a child of these tests, which is this binary, does.
int RunAsChild(const std::string& what) {
  if (what == "leave_well") return 0;
  if (what == "leave_with_code_7") return 7;
  if (what != "stay_in_own_process_group" || getpgid(0) != getpid()) return 1;
  return pause();
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--as_child") {
    return lockstep::RunAsChild(argv[2]);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
