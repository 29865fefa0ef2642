// A rank that is stopped: its connections stand, and it does nothing. It is
// found by its silence and named by all, and an idle group hardly runs for it.

#include <absl/base/config.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/e2e/worker_test_fixture.h"
#include "tests/testing/process.h"
#include "tests/testing/read_file.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using StoppedRankTest = testing::WorkerTest;

// By its step, by its silence, and while nothing runs.
TEST_F(StoppedRankTest, AFollowerThatIsStoppedIsNamed) {
  struct Case {
    const char* flag;
    bool runs;
  };
  for (const Case& c :
       {Case{"--step_timeout=1", true}, Case{"--heartbeat_timeout=2", true},
        Case{"--heartbeat_timeout=2", false}}) {
    SCOPED_TRACE(absl::StrCat(c.flag, c.runs ? " in a step" : " idle"));
    Group group(3, {c.flag});
    Call call(*group.stub, Request(c.runs ? kEndlessTokens : 1));
    ASSERT_TRUE(call.ReadDelta());
    if (!c.runs) {
      ASSERT_TRUE(call.ReadToEnd().ok());
    }
    kill(group.followers[1], SIGSTOP);
    if (c.runs) {
      const grpc::Status status = call.ReadToEnd();
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
      EXPECT_THAT(status.error_message(),
                  HasSubstr("rank 2 failed first: it has been silent for "));
    }
    const auto verdict = group.leader->WaitForLine("[SILENT]", kTimeout);
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_THAT(*verdict, HasSubstr("the group failed: rank 2 failed first: "));
    group.ExpectGone(/*exit_code=*/1, kEndOfABrokenGroup);
    EXPECT_THAT(group.leader->output(), HasSubstr("steps of this rank"));
  }
}

// Its followers name it, and it names itself when it goes on.
TEST_F(StoppedRankTest, ALeaderThatIsStoppedIsNamedByAll) {
  struct Case {
    const char* flag;
    bool runs;
  };
  for (const Case& c :
       {Case{"--step_timeout=1", true}, Case{"--heartbeat_timeout=2", true},
        Case{"--heartbeat_timeout=2", false}}) {
    SCOPED_TRACE(absl::StrCat(c.flag, c.runs ? " in a step" : " idle"));
    Group group(2, {c.flag});
    Call call(*group.stub, Request(c.runs ? kEndlessTokens : 1));
    ASSERT_TRUE(call.ReadDelta());
    if (!c.runs) {
      ASSERT_TRUE(call.ReadToEnd().ok());
    }
    group.leader->Signal(SIGSTOP);
    EXPECT_TRUE(testing::WaitUntilGone(group.followers[0], kTimeout));
    group.leader->Signal(SIGCONT);
    if (c.runs) {
      EXPECT_EQ(call.ReadToEnd().error_code(), grpc::StatusCode::UNAVAILABLE);
    }
    group.ExpectGone(/*exit_code=*/1, kEndOfABrokenGroup);
    EXPECT_THAT(group.leader->output(),
                HasSubstr("the group failed: rank 0 failed first: it has been "
                          "silent for "));
    EXPECT_THAT(group.leader->output(),
                Not(HasSubstr("the group failed: rank 1")));
  }
}

// Of user and system, all threads.
absl::Duration CpuTimeOf(pid_t pid) {
  const std::string stat =
      testing::ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  // After the name, which may have spaces, come fields 3 and on.
  const std::vector<std::string> fields =
      absl::StrSplit(stat.substr(stat.rfind(')') + 2), ' ');
  const int64_t ticks = std::stoll(fields.at(11)) + std::stoll(fields.at(12));
  return ticks * absl::Seconds(1) / sysconf(_SC_CLK_TCK);
}

// Heartbeats and watchdogs wake it a few times a second; one that spins would
// use all of a core.
TEST_F(StoppedRankTest, AnIdleGroupHardlyRuns) {
  constexpr absl::Duration kTime = absl::Seconds(10);
#ifdef ABSL_HAVE_THREAD_SANITIZER  // whose own work counts, too
  constexpr double kMostOfACore = 0.05;
#else
  constexpr double kMostOfACore = 0.01;
#endif
  Group group(2);
  const std::vector<pid_t> pids = {group.leader->pid(), group.followers[0]};
  std::vector<absl::Duration> before;
  for (const pid_t pid : pids) before.push_back(CpuTimeOf(pid));
  // Nothing happens on the channel either until then.
  ASSERT_TRUE(group.channel->WaitForConnected(
      absl::ToChronoTime(absl::Now() + kTimeout)));
  ASSERT_FALSE(group.channel->WaitForStateChange(
      GRPC_CHANNEL_READY, absl::ToChronoTime(absl::Now() + kTime)));
  for (size_t rank = 0; rank < pids.size(); ++rank) {
    const absl::Duration used = CpuTimeOf(pids[rank]) - before[rank];
    EXPECT_LT(used, kMostOfACore * kTime) << "rank " << rank;
    std::printf("rank %zu, idle: %.2f%% of a core\n", rank,
                100 * absl::FDivDuration(used, kTime));
  }
}

}  // namespace
}  // namespace lockstep
