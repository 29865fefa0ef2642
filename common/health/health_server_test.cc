#include "common/health/health_server.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/grpc_server.h"

namespace lockstep {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

HealthCheckRequest RequestFor(const std::string& service) {
  HealthCheckRequest request;
  request.set_service(service);
  return request;
}

class HealthServerTest : public ::testing::Test {
 protected:
  HealthServerTest() { Start(); }

  void Start() {
    auto server =
        HealthServer::Start("127.0.0.1:0", "health_listen", &board_, {"a.B"});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = Health::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", server_->port()),
        grpc::InsecureChannelCredentials(), ChannelArguments()));
  }

  HealthCheckResponse::ServingStatus Check(const std::string& service) {
    grpc::ClientContext context;
    HealthCheckResponse response;
    const grpc::Status status =
        stub_->Check(&context, RequestFor(service), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    trailers_.clear();
    for (const auto& [key, value] : context.GetServerTrailingMetadata()) {
      trailers_[{key.data(), key.size()}] = {value.data(), value.size()};
    }
    return response.status();
  }

  HealthBoard board_;
  std::unique_ptr<HealthServer> server_;
  std::unique_ptr<Health::Stub> stub_;
  std::map<std::string, std::string> trailers_;  // of the last Check
};

TEST_F(HealthServerTest, SaysLivenessAndReadinessApart) {
  for (const bool ready : {false, true, false}) {
    board_.Enter(ready ? Phase::kReady : Phase::kLoading);
    EXPECT_EQ(Check("liveness"), HealthCheckResponse::SERVING);
    for (const char* service : {"", "readiness", "a.B"}) {
      EXPECT_EQ(Check(service), ready ? HealthCheckResponse::SERVING
                                      : HealthCheckResponse::NOT_SERVING);
    }
  }
  board_.Enter(Phase::kFailed);
  EXPECT_EQ(Check("liveness"), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthServerTest, TellsHowFarTheStartHasCome) {
  board_.Enter(Phase::kForming, "ranks 1 and 3 are missing \xe2\x80\xa6");
  Check("readiness");
  EXPECT_EQ(trailers_["lockstep-phase"], "forming");
  EXPECT_EQ(trailers_["lockstep-detail"], "ranks 1 and 3 are missing ???");
}

TEST_F(HealthServerTest, KnowsNoOtherServices) {
  grpc::ClientContext context;
  HealthCheckResponse response;
  EXPECT_EQ(stub_->Check(&context, RequestFor("c.D"), &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
  grpc::ClientContext watch_context;
  const auto watch = stub_->Watch(&watch_context, RequestFor("c.D"));
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  watch_context.TryCancel();
  watch->Finish();
}

TEST_F(HealthServerTest, AWatchHearsOfEachChange) {
  grpc::ClientContext context;
  const auto watch = stub_->Watch(&context, RequestFor("readiness"));
  HealthCheckResponse response;
  for (const bool ready : {false, true, false}) {
    board_.Enter(ready ? Phase::kReady : Phase::kDraining);
    ASSERT_TRUE(watch->Read(&response));
    EXPECT_EQ(response.status(), ready ? HealthCheckResponse::SERVING
                                       : HealthCheckResponse::NOT_SERVING);
  }
  context.TryCancel();
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

// What nobody announces: work that became overdue.
TEST_F(HealthServerTest, AWatchHearsOfTimeThatPasses) {
  board_.Enter(Phase::kReady);
  std::atomic<bool> hangs = false;
  board_.SetWork({.ready = absl::Seconds(1), .live = absl::Seconds(1)}, [&] {
    return hangs ? absl::Seconds(2) : absl::ZeroDuration();
  });
  grpc::ClientContext context;
  const auto watch = stub_->Watch(&context, RequestFor("liveness"));
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  hangs = true;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  context.TryCancel();
  watch->Finish();
  board_.ClearWork();
}

// However far the thread has come with a call that the server cancels.
TEST_F(HealthServerTest, EndsInTheMidstOfWatches) {
  for (int round = 0; round < 50; ++round) {
    std::thread prober([this] {
      for (int i = 0; i < 4; ++i) {
        grpc::ClientContext context;
        const auto watch = stub_->Watch(&context, RequestFor("liveness"));
        HealthCheckResponse response;
        watch->Read(&response);
        // The last one leaves with the server.
        while (i == 3 && watch->Read(&response)) continue;
        context.TryCancel();
        watch->Finish();
      }
    });
    for (int i = 0; i < round; ++i) std::this_thread::yield();
    board_.Enter(round % 2 == 0 ? Phase::kReady : Phase::kDraining);
    server_ = nullptr;
    prober.join();
    Start();
  }
}

TEST_F(HealthServerTest, ManyWatchesDoNotKeepAProbeWaiting) {
  board_.Enter(Phase::kReady);
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader;
  };
  std::vector<std::unique_ptr<Call>> calls;
  HealthCheckResponse response;
  for (int i = 0; i < HealthServer::kMostWatches; ++i) {
    calls.push_back(std::make_unique<Call>());
    calls.back()->reader =
        stub_->Watch(&calls.back()->context, RequestFor("liveness"));
    ASSERT_TRUE(calls.back()->reader->Read(&response));
  }
  grpc::ClientContext context;
  EXPECT_EQ(
      stub_->Watch(&context, RequestFor("liveness"))->Finish().error_code(),
      grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Check("liveness"), HealthCheckResponse::SERVING);
  for (const auto& call : calls) {
    call->context.TryCancel();
    call->reader->Finish();
  }
}

TEST_F(HealthServerTest, EndsItsCallsWithItself) {
  grpc::ClientContext context;
  const auto watch = stub_->Watch(&context, RequestFor(""));
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  server_ = nullptr;
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_FALSE(watch->Finish().ok());
}

TEST_F(HealthServerTest, SharesAProcessWithOurServers) {
  auto other = GrpcServer::Start("127.0.0.1:0", "listen", {}, {});
  ASSERT_TRUE(other.ok()) << other.status();
  server_ = nullptr;
  Start();  // gRPC's own health service is on by now
  board_.Enter(Phase::kReady);
  EXPECT_EQ(Check("a.B"), HealthCheckResponse::SERVING);
}

TEST_F(HealthServerTest, APortInUseNamesTheFlag) {
  const std::string address = absl::StrCat("127.0.0.1:", server_->port());
  const auto second =
      HealthServer::Start(address, "health_listen", &board_, {});
  EXPECT_EQ(second.status(),
            absl::UnavailableError(absl::StrCat(
                "cannot listen on ", address,
                ": the address is in use or not of this host; choose another "
                "with --health_listen.")));
}

TEST_F(HealthServerTest, NoAddressMeansNoServer) {
  const auto none = StartHealthServer("", &board_, {});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(*none, nullptr);
  const auto some = StartHealthServer("127.0.0.1:0", &board_, {});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_GT((*some)->port(), 0);
}

}  // namespace
}  // namespace lockstep
