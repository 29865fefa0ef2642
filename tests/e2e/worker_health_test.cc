// What probes and signals get from a worker group, from its start to its end.

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <memory>
#include <string>

#include "common/error_reason.h"
#include "common/grpc_status.h"
#include "common/health.grpc.pb.h"
#include "tests/e2e/worker_test_fixture.h"
#include "tests/testing/process.h"
#include "tests/testing/wait_for_health.h"

namespace lockstep {
namespace {

using ::grpc::health::v1::Health;
using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;
using ::lockstep::testing::Process;
using ::lockstep::testing::WorkerTest;
using ::testing::HasSubstr;

// A process's health port, as its log names it.
class Probe {
 public:
  Probe(Process& process, absl::Duration timeout) {
    const auto line = process.WaitForLine("health on port ", timeout);
    EXPECT_TRUE(line.ok()) << line.status();
    channel_ = grpc::CreateChannel(
        absl::StrCat("127.0.0.1:", line->substr(line->rfind(' ') + 1)),
        grpc::InsecureChannelCredentials());
  }

  bool Serves(const std::string& service) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    const grpc::Status status =
        Health::NewStub(channel_)->Check(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto at = trailers.find("lockstep-phase");
    phase = at == trailers.end()
                ? ""
                : std::string(at->second.data(), at->second.size());
    return response.status() == HealthCheckResponse::SERVING;
  }

  void WaitUntil(const std::string& service, bool serves) {
    testing::WaitForHealth(channel_, service,
                           serves ? HealthCheckResponse::SERVING
                                  : HealthCheckResponse::NOT_SERVING);
  }

  std::string phase;  // at the last Serves

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

class WorkerHealthTest : public WorkerTest {
 protected:
  // A leader whose other rank does not come.
  static std::unique_ptr<Process> StartLonelyLeader() {
    auto leader = *Process::Start(
        kWorker,
        Arguments(2, {"--local_ranks=1", "--leader_address=127.0.0.1:0"}));
    EXPECT_TRUE(leader->WaitForLine("the group forms at ", kTimeout).ok());
    return leader;
  }

  // Stops a process, as a debugger or a full machine does.
  static void Freeze(pid_t pid) { kill(pid, SIGSTOP); }
};

TEST_F(WorkerHealthTest, AnswersFromTheStartToTheDrain) {
  const auto leader = StartLonelyLeader();
  Probe lonely(*leader, kTimeout);
  EXPECT_TRUE(lonely.Serves("liveness"));
  EXPECT_FALSE(lonely.Serves("readiness"));
  EXPECT_EQ(lonely.phase, "forming");

  Group group(2);
  Probe probe(*group.leader, kTimeout);
  for (const char* service :
       {"liveness", "readiness", "", "lockstep.v1.Worker"}) {
    EXPECT_TRUE(probe.Serves(service)) << service;
  }
  EXPECT_EQ(probe.phase, "ready");
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  group.leader->Signal(SIGTERM);
  probe.WaitUntil("readiness", false);
  EXPECT_TRUE(probe.Serves("liveness"));
  EXPECT_FALSE(probe.Serves("lockstep.v1.Worker"));
  EXPECT_EQ(probe.phase, "draining");
  group.leader->Signal(SIGTERM);
  group.ExpectGone(/*exit_code=*/0, kTimeout);
  for (const char* phase :
       {"forming", "loading", "warming up", "ready", "draining"}) {
    EXPECT_THAT(group.leader->output(),
                HasSubstr(absl::StrCat("phase: ", phase)));
  }
}

// The log is a full pipe: whoever writes to it waits.
TEST_F(WorkerHealthTest, ADrainBeginsThoughNobodyReadsTheLog) {
  Group group(2);
  Probe probe(*group.leader, kTimeout);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  group.leader->StopReading();
  group.leader->Signal(SIGTERM);
  probe.WaitUntil("readiness", false);
  EXPECT_TRUE(probe.Serves("liveness"));
  EXPECT_EQ(probe.phase, "draining");
  Call refused(*group.stub, Request(1));
  EXPECT_EQ(ErrorReasonOf(FromGrpc(refused.ReadToEnd())), "WORKER_DRAINING");
  group.leader->Signal(SIGTERM);
  EXPECT_EQ(ErrorReasonOf(FromGrpc(call.ReadToEnd())), "WORKER_STOPPED");
}

TEST_F(WorkerHealthTest, AGroupThatWasDrainedByACallServesAgain) {
  Group group(2);
  Probe probe(*group.leader, kTimeout);
  Call call(*group.stub, Request(2000));
  ASSERT_TRUE(call.ReadDelta());
  v1::DrainResponse drained, back;
  grpc::ClientContext drain_context, undrain_context;
  ASSERT_TRUE(group.stub->Drain(&drain_context, {}, &drained).ok());
  EXPECT_EQ(drained.state(), v1::DRAINING);
  EXPECT_FALSE(probe.Serves("readiness"));
  EXPECT_EQ(group.Health(""), HealthCheckResponse::NOT_SERVING);
  Call refused(*group.stub, Request(1));
  EXPECT_EQ(ErrorReasonOf(FromGrpc(refused.ReadToEnd())), "WORKER_DRAINING");
  EXPECT_TRUE(call.ReadToEnd().ok());
  EXPECT_EQ(call.tokens.size(), 2000);

  ASSERT_TRUE(group.stub->Undrain(&undrain_context, {}, &back).ok());
  EXPECT_EQ(back.state(), v1::SERVING);
  EXPECT_TRUE(probe.Serves("readiness"));
  Call again(*group.stub, Request(10));
  EXPECT_TRUE(again.ReadToEnd().ok());
}

TEST_F(WorkerHealthTest, ASignalBeforeTheGroupHasFormedEndsALeaderInOrder) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const auto leader = StartLonelyLeader();
    leader->Signal(signal);
    EXPECT_EQ(leader->WaitForExit(kTimeout).value_or(-1), 0);
    EXPECT_THAT(leader->output(), HasSubstr("ended by a signal before it"));
  }
}

// In whatever phase the signal finds it: no rank stays, and the leader's exit
// code says that it was asked to leave.
TEST_F(WorkerHealthTest, ASignalInAnyPhaseEndsAllRanks) {
  for (const char* phase :
       {"rank 0: phase: forming", "rank 0: phase: loading",
        "rank 0: phase: warming up", "rank 0: phase: ready"}) {
    SCOPED_TRACE(phase);
    const auto leader = *Process::Start(kWorker, Arguments(2, {}));
    ASSERT_TRUE(leader->WaitForLine(phase, kTimeout).ok());
    const auto followers = testing::ChildrenOf(leader->pid());
    leader->Signal(SIGTERM);
    EXPECT_EQ(leader->WaitForExit(kTimeout).value_or(-1), 0)
        << leader->output();
    for (const pid_t follower : followers) {
      EXPECT_TRUE(testing::WaitUntilGone(follower, kTimeout));
    }
  }
}

TEST_F(WorkerHealthTest, ASecondSignalEndsEvenAGroupThatHangs) {
  Group group(2);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  Freeze(group.followers[0]);
  group.leader->Signal(SIGTERM);
  ASSERT_TRUE(group.leader->WaitForLine("draining: ", kTimeout).ok());
  group.leader->Signal(SIGTERM);
  EXPECT_EQ(call.ReadToEnd().error_code(), grpc::StatusCode::UNAVAILABLE);
  // Three seconds for the steps, and what a broken group has.
  EXPECT_EQ(group.leader->WaitForExit(absl::Seconds(3) + kEndOfABrokenGroup)
                .value_or(-1),
            1);
  EXPECT_TRUE(testing::WaitUntilGone(group.followers[0], kTimeout));
}

TEST_F(WorkerHealthTest, ABrokenGroupSaysWhichRankAndThatARetryMayHelp) {
  Group group(2);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  kill(group.followers[0], SIGKILL);
  const absl::Status status = FromGrpc(call.ReadToEnd());
  EXPECT_EQ(ErrorReasonOf(status), "GROUP_FAILED");
  const std::map<std::string, std::string> metadata = ErrorMetadataOf(status);
  EXPECT_EQ(metadata.at("rank"), "1");
  EXPECT_EQ(metadata.at("retryable"), "true");
  EXPECT_FALSE(metadata.at("kind").empty());
  group.ExpectGone(/*exit_code=*/1, kEndOfABrokenGroup);
}

}  // namespace
}  // namespace lockstep
