// A rank that dies or hangs, at any time of a group's life: every stream ends,
// and every process is gone within 5 s.

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "common/error_reason.h"
#include "common/grpc_status.h"
#include "tests/e2e/worker_test_fixture.h"
#include "tests/testing/process.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Process;
using ::lockstep::testing::WorkerTest;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr int kKilled = 128 + SIGKILL;

class WorkerFailureTest : public WorkerTest {
 protected:
  static constexpr int kSize = 4;

  // A group of the leader, rank 1, which the leader starts, and ranks 2 and 3,
  // which are started apart.
  struct GroupInParts {
    GroupInParts() {
      leader = *Process::Start(
          kWorker, Arguments(kSize, {"--local_ranks=2",
                                     "--leader_address=127.0.0.1:0"}));
      const auto line = leader->WaitForLine("the group forms at ", kTimeout);
      EXPECT_TRUE(line.ok()) << line.status();
      address = line->substr(line->rfind(' ') + 1);
    }

    void StartRank(int rank) {
      apart[rank - 2] = *Process::Start(
          kWorker,
          Arguments(kSize, {"--local_ranks=1", absl::StrCat("--rank=", rank),
                            absl::StrCat("--leader_address=", address)}));
    }

    void WaitForLine(const std::string& line) {
      const auto found = leader->WaitForLine(line, kTimeout);
      EXPECT_TRUE(found.ok()) << found.status();
    }

    // 0 if the leader has started no rank.
    pid_t PidOf(int rank) {
      if (rank == 0) return leader->pid();
      if (rank >= 2) return apart[rank - 2]->pid();
      const auto children = testing::ChildrenOf(leader->pid());
      return children.empty() ? 0 : children[0];
    }

    // Kills the rank with SIGKILL; all others leave with exit code 1.
    void KillAndExpectGone(int victim) {
      const pid_t local = PidOf(1);
      ASSERT_GT(local, 0) << leader->output();
      kill(PidOf(victim), SIGKILL);
      ExpectExit(*leader, victim == 0);
      EXPECT_TRUE(testing::WaitUntilGone(local, kEndOfABrokenGroup));
      for (int rank = 2; rank < kSize; ++rank) {
        if (apart[rank - 2] == nullptr) continue;
        SCOPED_TRACE(absl::StrCat("rank ", rank));
        ExpectExit(*apart[rank - 2], victim == rank);
      }
    }

    static void ExpectExit(Process& rank, bool was_killed) {
      const auto code = rank.WaitForExit(kEndOfABrokenGroup);
      ASSERT_TRUE(code.ok()) << code.status();
      EXPECT_EQ(*code, was_killed ? kKilled : 1) << rank.output();
    }

    std::unique_ptr<Process> leader;
    std::string address;
    std::array<std::unique_ptr<Process>, kSize - 2> apart;
  };
};

TEST_F(WorkerFailureTest, ARankKilledWhileTheGroupFormsEndsIt) {
  for (const int victim : {0, 1}) {
    SCOPED_TRACE(absl::StrCat("rank ", victim));
    GroupInParts group;
    group.StartRank(2);
    group.WaitForLine("rank 1 has joined");
    group.WaitForLine("rank 2 has joined");
    group.KillAndExpectGone(victim);
  }
}

// Before the Welcome or just after it, while weights load and when they are
// loaded: what the leader has written when the rank dies.
TEST_F(WorkerFailureTest, ARankKilledWhileTheGroupStartsEndsIt) {
  const std::vector<std::string> kPhases[] = {
      {"rank 1 has joined", "rank 2 has joined", "rank 3 has joined"},
      {"rank 0: the group has formed"},
      {"llama from "},
  };
  for (const auto& lines : kPhases) {
    for (int victim = 0; victim < kSize; ++victim) {
      SCOPED_TRACE(absl::StrCat("rank ", victim, " after ", lines.back()));
      GroupInParts group;
      group.StartRank(2);
      group.StartRank(3);
      for (const std::string& line : lines) group.WaitForLine(line);
      group.KillAndExpectGone(victim);
    }
  }
}

TEST_F(WorkerFailureTest, ARankKilledWhileTheGroupIdlesEndsIt) {
  for (int victim = 0; victim < kSize; ++victim) {
    SCOPED_TRACE(absl::StrCat("rank ", victim));
    GroupInParts group;
    group.StartRank(2);
    group.StartRank(3);
    ASSERT_TRUE(group.leader->WaitForPort(kTimeout).ok());
    group.KillAndExpectGone(victim);
  }
}

TEST_F(WorkerFailureTest, AFollowerKilledInAStepEndsStreamsAndProcesses) {
  Group group(3);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  kill(group.followers[1], SIGKILL);
  const grpc::Status status = call.ReadToEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(),
              HasSubstr("the worker group failed: rank 2 failed first: "));
  group.ExpectGone(/*exit_code=*/1, kEndOfABrokenGroup);
  EXPECT_THAT(group.leader->output(), HasSubstr("the group failed: rank 2"));
}

// A full pipe holds whoever writes a line: who reads the log, as the service
// that keeps it does, may hang too.
TEST_F(WorkerFailureTest, ClientsAreToldOfAFailureThoughNobodyReadsTheLog) {
  Group group(2);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  group.leader->StopReading();
  kill(group.followers[0], SIGKILL);
  const absl::Status status = FromGrpc(call.ReadToEnd());
  EXPECT_EQ(ErrorReasonOf(status), "GROUP_FAILED");
  EXPECT_THAT(ErrorMetadataOf(status), Contains(Pair("rank", "1")));
  EXPECT_NE(group.leader->WaitForExit(kEndOfABrokenGroup).value_or(0), 0);
}

// They would know of nothing but the end of the leader.
TEST_F(WorkerFailureTest, RanksAreToldOfAFailureThoughNobodyReadsTheLog) {
  GroupInParts group;
  group.StartRank(2);
  group.StartRank(3);
  ASSERT_TRUE(group.leader->WaitForPort(kTimeout).ok());
  group.leader->StopReading();
  kill(group.PidOf(3), SIGKILL);
  EXPECT_EQ(group.apart[0]->WaitForExit(kEndOfABrokenGroup).value_or(0), 1);
  EXPECT_THAT(group.apart[0]->output(), HasSubstr("rank 3 failed first: "));
  EXPECT_NE(group.leader->WaitForExit(kEndOfABrokenGroup).value_or(0), 0);
}

TEST_F(WorkerFailureTest, AFollowerKilledInAStepOverTcpIsTheOneNamed) {
  Group group(3, {"--collective=gloo"});
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  kill(group.followers[1], SIGKILL);
  const grpc::Status status = call.ReadToEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("rank 2 failed first: "));
  group.ExpectGone(/*exit_code=*/1, kEndOfABrokenGroup);
}

TEST_F(WorkerFailureTest, ALeaderKilledInAStepEndsItsFollowers) {
  Group group(3);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  group.leader->Signal(SIGKILL);
  EXPECT_EQ(call.ReadToEnd().error_code(), grpc::StatusCode::UNAVAILABLE);
  group.ExpectGone(kKilled, kEndOfABrokenGroup);
}

TEST_F(WorkerFailureTest, AFollowerKilledInADrainIsNoGoodEnd) {
  Group group(2);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  group.leader->Signal(SIGTERM);
  ASSERT_TRUE(group.leader->WaitForLine("draining: ", kTimeout).ok());
  kill(group.followers[0], SIGKILL);
  EXPECT_EQ(call.ReadToEnd().error_code(), grpc::StatusCode::UNAVAILABLE);
  group.ExpectGone(/*exit_code=*/1, kEndOfABrokenGroup);
}

TEST_F(WorkerFailureTest, AFollowerOfOtherFlagsIsRefusedByTheirNames) {
  GroupInParts group;
  auto other = *Process::Start(
      kWorker,
      Arguments(kSize, {"--local_ranks=1", "--rank=2", "--page_size=32",
                        absl::StrCat("--leader_address=", group.address)}));
  EXPECT_EQ(other->WaitForExit(kTimeout).value_or(-1), 1);
  EXPECT_THAT(other->output(),
              AllOf(HasSubstr("refused: rank 2 on "),
                    HasSubstr(" has another --page_size than the leader: its "
                              "is 32, the leader's is 16.")));
}

}  // namespace
}  // namespace lockstep
