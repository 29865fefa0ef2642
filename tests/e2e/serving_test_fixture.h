#pragma once

#include <absl/strings/str_cat.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/inference.grpc.pb.h"
#include "proto/worker.grpc.pb.h"
#include "tests/e2e/tiny_model_test_fixture.h"
#include "tests/testing/process.h"

namespace lockstep::testing {

// A worker and a gateway as processes, on ports the system chooses.
//
//   TEST_F(ServingTest, Generates) {
//     ASSERT_NO_FATAL_FAILURE(StartBoth());
//     EXPECT_TRUE(Generate(Request(8)).back().has_summary());
//   }
class ServingTest : public TinyModelTest {
 protected:
  void StartWorker(const std::string& listen = "127.0.0.1:0") {
    auto worker = Process::Start(
        "worker/worker",
        {absl::StrCat("--model=", ModelPath()), "--served_model_name=tiny",
         absl::StrCat("--listen=", listen), "--threads=1", "--num_pages=4096"});
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
    const auto port = worker_->WaitForPort(kTimeout);
    ASSERT_TRUE(port.ok()) << port.status();
    worker_address_ = absl::StrCat("127.0.0.1:", *port);
  }

  void StartGateway(
      const std::string& tokenizer_flag,
      const std::map<std::string, std::string>& environment = {}) {
    auto gateway = Process::Start(
        "frontend/gateway",
        {tokenizer_flag, "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0",
         absl::StrCat("--workers=", worker_address_)},
        environment);
    ASSERT_TRUE(gateway.ok()) << gateway.status();
    gateway_ = *std::move(gateway);
    const auto port = gateway_->WaitForPort(kTimeout);
    ASSERT_TRUE(port.ok()) << port.status();
    address_ = absl::StrCat("127.0.0.1:", *port);
    const auto line = gateway_->WaitForLine("gateway: HTTP on ", kTimeout);
    ASSERT_TRUE(line.ok()) << line.status();
    http_address_ = line->substr(line->rfind(' ') + 1);
    channel_ = Connect(address_);
    stub_ = v1::Inference::NewStub(channel_);
  }

  void StartBoth() {
    ASSERT_NO_FATAL_FAILURE(StartWorker());
    ASSERT_NO_FATAL_FAILURE(
        StartGateway(absl::StrCat("--model=", ModelPath())));
  }

  static v1::GenerateRequest Request(int max_tokens) {
    v1::GenerateRequest request;
    request.set_text("The capital");
    request.mutable_sampling()->set_temperature(0);
    request.mutable_sampling()->set_max_tokens(max_tokens);
    request.mutable_sampling()->set_ignore_eos(true);
    return request;
  }

  // All events of an answer that ends well.
  std::vector<v1::GenerateResponse> Generate(
      const v1::GenerateRequest& request) {
    grpc::ClientContext context;
    const auto stream = stub_->Generate(&context, request);
    std::vector<v1::GenerateResponse> events;
    v1::GenerateResponse event;
    while (stream->Read(&event)) events.push_back(event);
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return events;
  }

  // Nothing runs, waits or holds a page; well before the request's own end.
  void ExpectIdleSoon() {
    grpc::ClientContext context;
    v1::WatchLoadRequest request;
    request.set_interval_ms(10);
    const auto worker = v1::Worker::NewStub(Connect(worker_address_));
    const auto stream = worker->WatchLoad(&context, request);
    v1::Load load;
    do {
      ASSERT_TRUE(stream->Read(&load)) << "the worker ended at work";
    } while (load.running_sequences() > 0 || load.waiting_sequences() > 0);
    EXPECT_EQ(load.free_pages() + load.cached_pages(), load.total_pages());
    EXPECT_LT(load.step(), kEndlessTokens);
    context.TryCancel();
    stream->Finish();
  }

  std::string worker_address_;
  std::string address_;       // of the gateway
  std::string http_address_;  // of the gateway, too
  std::unique_ptr<Process> worker_;
  std::unique_ptr<Process> gateway_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Inference::Stub> stub_;
};

}  // namespace lockstep::testing
