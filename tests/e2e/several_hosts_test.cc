// Groups over several hosts, which are network namespaces of this machine: they
// answer as a group of one host does, over good links and bad, and end when a
// link is cut. Making namespaces takes root; without it these tests are
// skipped.

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/worker_test_fixture.h"
#include "tests/testing/host_network.h"
#include "tests/testing/lossy_hub.h"
#include "tests/testing/process.h"

namespace lockstep {
namespace {

using ::lockstep::testing::HostNetwork;
using ::lockstep::testing::LossyHub;
using ::lockstep::testing::Process;
using ::lockstep::testing::WorkerTest;
using ::testing::HasSubstr;

// Until a host that vanished is noticed (see ConfigureSocket); its group has
// its own limit after that.
constexpr absl::Duration kDetection = absl::Seconds(4);

class SeveralHostsTest : public WorkerTest {
 protected:
  // One worker a host, of which each starts its share of the ranks.
  struct HostGroup {
    HostGroup(HostNetwork& network, int num_hosts, int size)
        : address(absl::StrCat(HostNetwork::address(0), ":50052")) {
      for (int host = 0; host < num_hosts; ++host) {
        network.On(host, [&] {
          workers.push_back(*Process::Start(
              kWorker, Arguments(size, {absl::StrCat("--num_nodes=", num_hosts),
                                        absl::StrCat("--node_rank=", host),
                                        absl::StrCat("--listen=", address),
                                        absl::StrCat("--leader_address=",
                                                     HostNetwork::address(0),
                                                     ":7000")})));
        });
      }
      const auto serving = workers[0]->WaitForPort(kTimeout);
      EXPECT_TRUE(serving.ok()) << serving.status();
      stub = v1::Worker::NewStub(Connect(address));
    }

    void ExpectGoneWithin(absl::Duration limit) {
      for (const auto& worker : workers) {
        const auto code = worker->WaitForExit(limit);
        EXPECT_EQ(code.value_or(-1), 1) << worker->output();
      }
    }

    const std::string address;
    std::vector<std::unique_ptr<Process>> workers;  // by host
    std::unique_ptr<v1::Worker::Stub> stub;
  };

  void MakeNetwork(int num_hosts,
                   const std::optional<LossyHub::Options>& hub = {}) {
    auto made = HostNetwork::Create({.num_hosts = num_hosts, .hub = hub});
    if (absl::IsPermissionDenied(made.status()) ||
        absl::IsNotFound(made.status())) {
      GTEST_SKIP() << made.status().message();
    }
    ASSERT_TRUE(made.ok()) << made.status();
    network_ = *std::move(made);
  }

  static std::vector<uint32_t> TokensOf(v1::Worker::Stub& stub,
                                        uint32_t max_tokens) {
    Call call(stub, Request(max_tokens));
    const grpc::Status status = call.ReadToEnd();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return call.tokens;
  }

  // Of a group on one host, with shared memory.
  static std::vector<uint32_t> ExpectedTokens(int size, uint32_t max_tokens) {
    Group group(size);
    EXPECT_EQ(ServerOf(group).collective(), "shared_memory");
    const auto tokens = TokensOf(*group.stub, max_tokens);
    EXPECT_EQ(tokens.size(), max_tokens);
    return tokens;
  }

  std::unique_ptr<HostNetwork> network_;
};

TEST_F(SeveralHostsTest, TwoHostsAnswerAsOne) {
  MakeNetwork(2);
  if (network_ == nullptr) return;
  HostGroup group(*network_, 2, /*size=*/2);
  v1::ServerInfo info;
  grpc::ClientContext context;
  ASSERT_TRUE(group.stub->GetServerInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.collective(), "gloo");
  EXPECT_EQ(TokensOf(*group.stub, 64), ExpectedTokens(2, 64));
  group.workers[0]->Signal(SIGTERM);
  for (const auto& worker : group.workers) {
    EXPECT_EQ(worker->WaitForExit(kTimeout).value_or(-1), 0)
        << worker->output();
  }
}

TEST_F(SeveralHostsTest, HostsOfTwoRanksEachAnswerAsOne) {
  MakeNetwork(2);
  if (network_ == nullptr) return;
  HostGroup group(*network_, 2, /*size=*/4);
  EXPECT_EQ(TokensOf(*group.stub, 32), ExpectedTokens(4, 32));
}

TEST_F(SeveralHostsTest, ThreeHostsAnswerAsOne) {
  MakeNetwork(3);
  if (network_ == nullptr) return;
  HostGroup group(*network_, 3, /*size=*/3);
  EXPECT_EQ(TokensOf(*group.stub, 64), ExpectedTokens(3, 64));
}

TEST_F(SeveralHostsTest, ALinkThatLosesAndDelaysChangesNoToken) {
  MakeNetwork(2,
              LossyHub::Options{.loss = 0.01, .delay = absl::Milliseconds(1)});
  if (network_ == nullptr) return;
  HostGroup group(*network_, 2, /*size=*/2);
  EXPECT_EQ(TokensOf(*group.stub, 64), ExpectedTokens(2, 64));
  EXPECT_GT(network_->hub()->num_lost(), 0);
}

TEST_F(SeveralHostsTest, ALinkThatIsCutEndsTheGroup) {
  MakeNetwork(3);
  if (network_ == nullptr) return;
  HostGroup group(*network_, 3, /*size=*/3);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  const absl::Time cut = absl::Now();
  ASSERT_TRUE(network_->Unplug(2).ok());
  const grpc::Status status = call.ReadToEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("rank 2 failed first: "));
  group.ExpectGoneWithin(kEndOfABrokenGroup + kDetection);
  EXPECT_LT(absl::Now() - cut, kEndOfABrokenGroup + kDetection);
  // The hosts that still reach each other agree; the one that is cut off can
  // only say whom it has lost.
  for (int host = 0; host < 2; ++host) {
    EXPECT_THAT(group.workers[host]->output(),
                HasSubstr("the group failed: rank 2 failed first: "));
  }
  EXPECT_THAT(group.workers[2]->output(),
              HasSubstr("the group failed: rank 0 failed first: "));
}

TEST_F(SeveralHostsTest, ALinkThatIsCutWhileTheGroupIdlesEndsIt) {
  MakeNetwork(2);
  if (network_ == nullptr) return;
  HostGroup group(*network_, 2, /*size=*/2);
  ASSERT_TRUE(network_->Unplug(1).ok());
  group.ExpectGoneWithin(kEndOfABrokenGroup + kDetection);
  EXPECT_THAT(group.workers[0]->output(),
              HasSubstr("the group failed: rank 1 failed first: "));
}

}  // namespace
}  // namespace lockstep
