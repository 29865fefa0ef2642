#pragma once

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/grpc_server.h"
#include "common/health.pb.h"
#include "common/health/health_board.h"
#include "common/metrics/metric_board.h"
#include "frontend/gateway.h"
#include "frontend/gateway_metrics.h"
#include "frontend/routing/worker_call.h"
#include "proto/inference.grpc.pb.h"
#include "tests/testing/fake_tokenizer.h"
#include "tests/testing/fake_worker.h"
#include "tests/testing/wait_for_health.h"

namespace lockstep::testing {

// All that came of a Generate call.
struct Outcome {
  std::vector<v1::GenerateResponse> messages;
  grpc::Status status;

  std::string Text(uint32_t index = 0) const {
    std::string text;
    for (const auto& message : messages) {
      if (message.delta().index() == index) text += message.delta().text();
    }
    return text;
  }
};

// Accepts, and then says nothing more.
inline FakeAnswer Hang(const v1::WorkerGenerateRequest& request) {
  FakeAnswer answer;
  answer.messages = {AcceptedMessage(request)};
  answer.then = FakeAnswer::Then::kAwaitCancel;
  return answer;
}

inline v1::GenerateRequest TextRequest() {
  v1::GenerateRequest request;
  request.set_text("hi");
  return request;
}

// A worker and a gateway in this process, each on a port of its own, and a
// client of the gateway.
//
//   TEST_F(GatewayTest, Answers) {
//     EXPECT_EQ(Generate(TextRequest()).Text(), "né!");  // as it is scripted
//   }
class GatewayTest : public ::testing::Test {
 protected:
  // `adjust` says what is other than usual.
  explicit GatewayTest(
      const std::function<void(GatewayOptions*)>& adjust = nullptr) {
    worker_.set_script([](const auto& request) { return Say(request, "né!"); });
    worker_.Start();
    GatewayOptions options;
    options.listen = "127.0.0.1:0";
    options.http_listen = "127.0.0.1:0";
    options.workers = {worker_.address()};
    options.drain_timeout = absl::Seconds(30);
    // What ends with a lost group does so at once.
    options.routing.retry.group_wait = absl::ZeroDuration();
    if (adjust != nullptr) adjust(&options);
    auto gateway = Gateway::Start(
        options, &tokenizer_,
        [this](const ServedModel& model, Gateway::Ports ports) {
          EXPECT_EQ(model.name, "fake");
          EXPECT_NE(ports.grpc, 0);
          serving_.Notify();
        },
        &health_, &metrics_, [this] { drain_asked_for_.Notify(); });
    EXPECT_TRUE(gateway.ok()) << gateway.status();
    gateway_ = *std::move(gateway);
    grpc::ChannelArguments arguments = ChannelArguments();
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // windows do not grow
    channel_ = grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", gateway_->ports().grpc),
        grpc::InsecureChannelCredentials(), arguments);
    stub_ = v1::Inference::NewStub(channel_);
    serving_.WaitForNotification();
  }

  Outcome Generate(const v1::GenerateRequest& request,
                   const CallMetadata& metadata = {}) {
    grpc::ClientContext context;
    for (const auto& [name, value] : metadata) context.AddMetadata(name, value);
    Outcome outcome;
    const auto stream = stub_->Generate(&context, request);
    v1::GenerateResponse message;
    while (stream->Read(&message)) outcome.messages.push_back(message);
    outcome.status = stream->Finish();
    return outcome;
  }

  int http_port() const { return gateway_->ports().http; }

  // Follows the health of the gateway up to a status.
  void WaitForHealth(
      grpc::health::v1::HealthCheckResponse::ServingStatus status) {
    testing::WaitForHealth(channel_, v1::Inference::service_full_name(),
                           status);
  }

  HealthBoard health_;
  MetricBoard metrics_{GatewayMetrics()};
  FakeWorker worker_;
  FakeTokenizer tokenizer_;
  absl::Notification serving_;
  absl::Notification drain_asked_for_;  // by a client that may
  std::unique_ptr<Gateway> gateway_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Inference::Stub> stub_;
};

}  // namespace lockstep::testing
