#include "frontend/gateway.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "common/error_reason.h"
#include "common/grpc_server.h"
#include "common/grpc_status.h"
#include "common/health.grpc.pb.h"
#include "common/health/health_board.h"
#include "frontend/grpc/request_parser.h"
#include "frontend/routing/worker_client.h"
#include "proto/inference.pb.h"
#include "proto/tokenizer.grpc.pb.h"
#include "tests/testing/fake_tokenizer.h"
#include "tests/testing/fake_worker.h"
#include "tests/testing/gateway_test_fixture.h"
#include "tests/testing/http/raw_connection.h"
#include "tests/testing/reflection_client.h"

namespace lockstep {
namespace {

using ::grpc::health::v1::HealthCheckResponse;
using ::lockstep::testing::AcceptedMessage;
using ::lockstep::testing::DeltaMessage;
using ::lockstep::testing::FakeAnswer;
using ::lockstep::testing::FakeWorker;
using ::lockstep::testing::FinishMessage;
using ::lockstep::testing::GatewayTest;
using ::lockstep::testing::Hang;
using ::lockstep::testing::Outcome;
using ::lockstep::testing::Say;
using ::lockstep::testing::SummaryMessage;
using ::lockstep::testing::TextRequest;
using ::testing::HasSubstr;

TEST_F(GatewayTest, TokenizeAndBack) {
  grpc::ClientContext encoding, rendering, decoding;
  v1::TokenizeRequest text, chat;
  text.set_text("hé");
  v1::TokenizeResponse encoded, rendered;
  ASSERT_TRUE(stub_->Tokenize(&encoding, text, &encoded).ok());
  EXPECT_EQ(encoded.token_ids_size(), 4);  // <bos> and three bytes
  EXPECT_FALSE(encoded.has_text());

  chat.mutable_chat()->add_messages()->set_role("user");
  ASSERT_TRUE(stub_->Tokenize(&rendering, chat, &rendered).ok());
  EXPECT_EQ(rendered.text(), "<bos>[user][assistant]");

  v1::DetokenizeRequest ids;
  *ids.mutable_token_ids() = encoded.token_ids();
  v1::DetokenizeResponse decoded;
  ASSERT_TRUE(stub_->Detokenize(&decoding, ids, &decoded).ok());
  EXPECT_EQ(decoded.text(), "hé");
}

TEST_F(GatewayTest, ListsTheModel) {
  grpc::ClientContext context;
  v1::ListModelsResponse response;
  ASSERT_TRUE(stub_->ListModels(&context, {}, &response).ok());
  ASSERT_EQ(response.models_size(), 1);
  EXPECT_EQ(response.models(0).name(), "fake");
  EXPECT_EQ(response.models(0).max_context_tokens(), 100);
}

TEST_F(GatewayTest, ReflectionDescribesTheService) {
  ::lockstep::testing::ReflectionClient reflection(channel_);
  const auto services = reflection.ListServices();
  ASSERT_TRUE(services.ok()) << services.status();
  EXPECT_EQ(services->back(), "lockstep.v1.Inference");
  const auto files = reflection.FilesOf("lockstep.v1.Inference");
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_FALSE(files->empty());
  EXPECT_EQ((*files)[0].service(0).method(0).name(), "Generate");
}

TEST_F(GatewayTest, ALostWorkerIsUnavailableAndComesBackByItself) {
  worker_.set_script(Hang);
  Outcome broken;
  std::thread client([&] { broken = Generate(TextRequest()); });
  worker_.WaitForRequests(1);
  worker_.Stop();
  client.join();
  EXPECT_EQ(ErrorReasonOf(FromGrpc(broken.status)), "WORKER_UNREACHABLE");
  WaitForHealth(HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(health_.report().phase, Phase::kConnecting);
  EXPECT_FALSE(health_.report().ready);
  EXPECT_TRUE(health_.report().live);
  const Outcome refused = Generate(TextRequest());
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(refused.status.error_message(),
            absl::StrCat("the worker at ", worker_.address(),
                         " cannot be reached; start it, or name another with "
                         "--workers."));

  worker_.set_script([](const auto& request) { return Say(request, "back"); });
  worker_.Start();
  WaitForHealth(HealthCheckResponse::SERVING);
  EXPECT_TRUE(health_.report().ready);
  EXPECT_EQ(Generate(TextRequest()).Text(), "back");
}

TEST_F(GatewayTest, TheWorkersReasonAndItsHintReachTheClient) {
  worker_.set_script([](const auto&) {
    FakeAnswer answer;
    answer.status =
        MakeError(ErrorReason::kQueueFullRequests, "full.",
                  {.metadata = {}, .retry_delay = absl::Milliseconds(700)});
    return answer;
  });
  const absl::Status status = FromGrpc(Generate(TextRequest()).status);
  EXPECT_EQ(ErrorReasonOf(status), "QUEUE_FULL_REQUESTS");
  EXPECT_EQ(RetryDelayOf(status), absl::Milliseconds(700));
}

TEST_F(GatewayTest, DrainLetsRunningRequestsFinish) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request), DeltaMessage(0, "slow")};
    answer.then = FakeAnswer::Then::kAwaitAbort;
    answer.after_abort = {FinishMessage(0, v1::ABORTED), SummaryMessage()};
    return answer;
  });
  grpc::ClientContext watching, context;
  const auto health =
      grpc::health::v1::Health::NewStub(channel_)->Watch(&watching, {});
  HealthCheckResponse status;
  ASSERT_TRUE(health->Read(&status));
  EXPECT_EQ(status.status(), HealthCheckResponse::SERVING);
  const auto stream = stub_->Generate(&context, TextRequest());
  v1::GenerateResponse message;
  ASSERT_TRUE(stream->Read(&message));

  std::thread drain([&] { gateway_->Drain(); });
  ASSERT_TRUE(health->Read(&status));
  EXPECT_EQ(status.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(health_.report().phase, Phase::kDraining);
  // Somebody ends the request while the gateway drains.
  WorkerClient(worker_.address())
      .Abort(worker_.requests()[0].request_id(), {0});
  while (stream->Read(&message)) continue;
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(message.has_summary());
  drain.join();
}

TEST_F(GatewayTest, ARequestOfAnySizeIsRefusedWithoutReadingIt) {
  v1::GenerateRequest request;
  request.set_text(std::string(kMaxRequestBytes, 'a'));
  EXPECT_EQ(Generate(request).status.error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(GatewayTest, WhatDoesNotEndInTimeIsToldWhy) {
  worker_.set_script(Hang);
  Outcome outcome;
  std::thread client([&] { outcome = Generate(TextRequest()); });
  worker_.WaitForRequests(1);
  gateway_ = nullptr;
  client.join();
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(outcome.status.error_message(),
            "the gateway is shutting down; try again at another.");
  EXPECT_EQ(ErrorReasonOf(FromGrpc(outcome.status)), "GATEWAY_DRAINING");
  worker_.WaitForCancels(1);
}

TEST(GatewayStart, IsNotReadyWithoutItsTokenizerService) {
  v1::Tokenizer::Service service;
  auto tokenizer_server =
      *GrpcServer::Start("127.0.0.1:0", "listen", {&service},
                         {v1::Tokenizer::service_full_name()});
  tokenizer_server->SetServing(true);
  FakeWorker worker;
  worker.Start();
  FakeTokenizer tokenizer;
  GatewayOptions options;
  options.listen = options.http_listen = "127.0.0.1:0";
  options.workers = {worker.address()};
  options.tokenizer_address =
      absl::StrCat("127.0.0.1:", tokenizer_server->port());
  auto gateway = *Gateway::Start(options, &tokenizer, nullptr);
  const auto channel = grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", gateway->ports().grpc),
      grpc::InsecureChannelCredentials());
  const auto await = [&](HealthCheckResponse::ServingStatus status) {
    testing::WaitForHealth(channel, v1::Inference::service_full_name(), status);
    return testing::Fetch(gateway->ports().http, "/ready");
  };
  EXPECT_EQ(await(HealthCheckResponse::SERVING).status, 200);
  tokenizer_server->SetServing(false);
  const auto refused = await(HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body,
              HasSubstr(absl::StrCat("the tokenizer service at ",
                                     options.tokenizer_address,
                                     " is not ready")));
  tokenizer_server->SetServing(true);
  EXPECT_EQ(await(HealthCheckResponse::SERVING).status, 200);
  gateway = nullptr;
  tokenizer_server->Shutdown(/*grace_ms=*/0);
}

TEST(GatewayStart, APortInUseIsOneSentence) {
  auto other = GrpcServer::Start("127.0.0.1:0", "listen", {}, {});
  ASSERT_TRUE(other.ok());
  FakeTokenizer tokenizer;
  GatewayOptions options;
  options.listen = absl::StrCat("127.0.0.1:", (*other)->port());
  options.workers = {"127.0.0.1:1"};
  EXPECT_EQ(Gateway::Start(options, &tokenizer, nullptr).status().message(),
            absl::StrCat("cannot listen on ", options.listen,
                         ": the address is in use or not of this host; choose "
                         "another with --listen."));
}

}  // namespace
}  // namespace lockstep
