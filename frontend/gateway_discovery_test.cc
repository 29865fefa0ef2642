// A gateway that follows the leaders of a Kubernetes Service: docs/routing.md.

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "frontend/gateway.h"
#include "frontend/options.h"
#include "proto/inference.grpc.pb.h"
#include "proto/worker.grpc.pb.h"
#include "tests/testing/fake_worker.h"
#include "tests/testing/gateway_test_fixture.h"
#include "tests/testing/http/scraped.h"
#include "tests/testing/kubernetes/endpoint_slice.h"
#include "tests/testing/kubernetes/fake_api_server.h"

namespace lockstep {
namespace {

using ::lockstep::testing::EndpointSlice;
using ::lockstep::testing::FakeAnswer;
using ::lockstep::testing::FakeApiServer;
using ::lockstep::testing::FakeWorker;
using ::lockstep::testing::GatewayTest;
using ::lockstep::testing::Say;
using ::lockstep::testing::Scraped;
using ::lockstep::testing::TextRequest;

std::string AccountFolder() { return ::testing::TempDir() + "account"; }

// A base, as the gateway needs it from the start on.
struct Cluster {
  Cluster() {
    setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", absl::StrCat(api_server_.port()).c_str(),
           1);
  }

  FakeApiServer api_server_{AccountFolder()};
};

class GatewayDiscoveryTest : public Cluster, public GatewayTest {
 protected:
  GatewayDiscoveryTest()
      : GatewayTest([this](GatewayOptions* options) {
          options->worker_discovery = {.where = "kubernetes:prod/leaders",
                                       .account_folder = AccountFolder()};
          SetLeader(worker_, /*ready=*/true);
        }) {
    other_.set_script([](const auto& request) { return Say(request, "no!"); });
    other_.Start();
  }

  // In a slice of its own, as each has a port of its own.
  void SetLeader(const FakeWorker& worker, bool ready) {
    const std::string address = worker.address();
    int port = 0;
    ASSERT_TRUE(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    api_server_.Put(EndpointSlice(absl::StrCat("leaders-", port), port,
                                  {{.address = "127.0.0.1", .ready = ready}}));
  }

  void AwaitMetric(const std::string& name, double value) {
    while (true) {
      const auto scraped = Scraped(metrics_.Text());
      const auto found = scraped.find(name);
      if (found != scraped.end() && found->second == value) return;
      std::this_thread::yield();
    }
  }
  void AwaitReady(const FakeWorker& worker) {
    AwaitMetric(absl::StrCat("lockstep_gateway_group_ready{group=\"",
                             worker.address(), "\"}"),
                1);
  }
  void AwaitGone(const FakeWorker& worker) {
    const std::string name = absl::StrCat(
        "lockstep_gateway_group_ready{group=\"", worker.address(), "\"}");
    while (Scraped(metrics_.Text()).contains(name)) std::this_thread::yield();
  }
  // An answer that waits for it.
  static void LetGoOn(const FakeWorker& worker) {
    const auto stub = v1::Worker::NewStub(grpc::CreateChannel(
        worker.address(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::AbortRequest request;
    request.add_request_ids(worker.requests().front().request_id());
    v1::AbortResponse response;
    EXPECT_TRUE(stub->Abort(&context, request, &response).ok());
  }

  std::string Answer() { return Generate(TextRequest()).Text(); }

  FakeWorker other_;
};

TEST_F(GatewayDiscoveryTest, RequestsGoWhereLeadersAreReady) {
  EXPECT_EQ(Answer(), "né!");
  SetLeader(other_, true);
  AwaitReady(other_);
  SetLeader(worker_, false);
  AwaitGone(worker_);
  EXPECT_EQ(Answer(), "no!");
  SetLeader(worker_, true);
  SetLeader(other_, false);
  AwaitReady(worker_);
  AwaitGone(other_);
  EXPECT_EQ(Answer(), "né!");
}

TEST_F(GatewayDiscoveryTest, ARunningStreamOutlivesItsEndpoint) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer = Say(request, "né!");
    answer.after_abort = {answer.messages.begin() + 2, answer.messages.end()};
    answer.messages.resize(2);
    answer.then = FakeAnswer::Then::kAwaitAbort;
    return answer;
  });
  grpc::ClientContext context;
  const auto stream = stub_->Generate(&context, TextRequest());
  v1::GenerateResponse message;
  ASSERT_TRUE(stream->Read(&message));
  ASSERT_TRUE(stream->Read(&message));
  std::string text = message.delta().text();

  SetLeader(other_, true);
  AwaitReady(other_);
  SetLeader(worker_, false);
  AwaitGone(worker_);
  EXPECT_EQ(Answer(), "no!");
  LetGoOn(worker_);
  while (stream->Read(&message)) text += message.delta().text();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(text, "né!");
  EXPECT_EQ(worker_.requests().size(), 1);
}

TEST_F(GatewayDiscoveryTest, AllStaysWhileTheApiServerIsAway) {
  api_server_.Stop();
  AwaitMetric("lockstep_gateway_discovery_up", 0);
  EXPECT_EQ(Answer(), "né!");
  api_server_.Start();
  SetLeader(other_, true);
  AwaitMetric("lockstep_gateway_discovery_up", 1);
  AwaitReady(other_);
}

TEST_F(GatewayDiscoveryTest, WithoutLeadersItIsNotReady) {
  SetLeader(worker_, false);
  WaitForHealth(grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  SetLeader(worker_, true);
  WaitForHealth(grpc::health::v1::HealthCheckResponse::SERVING);
}

}  // namespace
}  // namespace lockstep
