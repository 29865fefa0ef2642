// The gateway as a process, in front of a worker.

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "common/health.pb.h"
#include "proto/inference.pb.h"
#include "tests/e2e/serving_test_fixture.h"
#include "tests/testing/http/raw_connection.h"
#include "tests/testing/process.h"
#include "tests/testing/reflection_client.h"
#include "tests/testing/wait_for_health.h"
#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

using ::grpc::health::v1::HealthCheckResponse;
using ::lockstep::testing::Process;
using ::lockstep::testing::ReflectionClient;
using ::lockstep::testing::ServingTest;
using ::lockstep::testing::WaitForHealth;

std::string TextOf(const std::vector<v1::GenerateResponse>& events) {
  std::string text;
  for (const auto& event : events) text += event.delta().text();
  return text;
}

TEST_F(ServingTest, ListsDescribesAndGenerates) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  ReflectionClient reflection(channel_);
  const auto services = reflection.ListServices();
  ASSERT_TRUE(services.ok()) << services.status();
  EXPECT_EQ(*services, (std::vector<std::string>{
                           "grpc.health.v1.Health",
                           "grpc.reflection.v1alpha.ServerReflection",
                           "lockstep.v1.Inference"}));
  const auto files = reflection.FilesOf("lockstep.v1.Inference");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->size(), 3);  // with those that it imports

  WaitForHealth(channel_, "lockstep.v1.Inference",
                HealthCheckResponse::SERVING);
  WaitForHealth(Connect(worker_address_), "lockstep.v1.Worker",
                HealthCheckResponse::SERVING);

  const auto events = Generate(Request(/*max_tokens=*/8));
  ASSERT_GE(events.size(), 4);
  EXPECT_TRUE(events.front().has_accepted());
  EXPECT_EQ(events.front().accepted().model(), "tiny");
  EXPECT_TRUE(events.back().has_summary());
  EXPECT_EQ(events.back().summary().usage().completion_tokens(), 8);
}

TEST_F(ServingTest, AStreamsTextIsTheTextOfItsIds) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  const auto events = Generate(Request(/*max_tokens=*/100));
  v1::DetokenizeRequest ids;
  for (const auto& event : events) {
    ids.mutable_token_ids()->MergeFrom(event.delta().token_ids());
  }
  EXPECT_EQ(ids.token_ids_size(), 100);
  grpc::ClientContext context;
  v1::DetokenizeResponse whole;
  ASSERT_TRUE(stub_->Detokenize(&context, ids, &whole).ok());
  EXPECT_EQ(TextOf(events), whole.text());
}

TEST_F(ServingTest, AStopStringEndsTheTextBeforeIt) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  const std::string text = TextOf(Generate(Request(/*max_tokens=*/100)));
  // The character in the middle.
  size_t begin = text.size() / 2;
  while ((text[begin] & 0xc0) == 0x80) --begin;
  size_t end = begin + 1;
  while ((text[end] & 0xc0) == 0x80) ++end;
  const std::string stop = text.substr(begin, end - begin);
  v1::GenerateRequest request = Request(kEndlessTokens);
  request.add_stop(stop);
  const auto events = Generate(request);
  EXPECT_EQ(TextOf(events), text.substr(0, text.find(stop)));
  ASSERT_GE(events.size(), 2);
  EXPECT_EQ(events[events.size() - 2].finish().stop_string(), stop);
  ExpectIdleSoon();
}

TEST_F(ServingTest, WhatTheWorkerRefusesReachesTheClientAsItIs) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  v1::GenerateRequest request = Request(8);
  request.mutable_sampling()->set_temperature(-1);
  grpc::ClientContext context;
  const auto stream = stub_->Generate(&context, request);
  v1::GenerateResponse event;
  EXPECT_FALSE(stream->Read(&event));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(status.error_message(), "temperature"))
      << status.error_message();
}

TEST_F(ServingTest, HangingUpFreesThePages) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  {
    grpc::ClientContext context;
    const auto stream = stub_->Generate(&context, Request(kEndlessTokens));
    v1::GenerateResponse event;
    while (stream->Read(&event) && !event.has_delta()) continue;
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  ExpectIdleSoon();
}

TEST_F(ServingTest, AWorkerThatIsKilledEndsItsStreamsAndIsFoundAgain) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  grpc::ClientContext context;
  const auto stream = stub_->Generate(&context, Request(kEndlessTokens));
  v1::GenerateResponse event;
  while (stream->Read(&event) && !event.has_delta()) continue;
  worker_->Signal(SIGKILL);
  while (stream->Read(&event)) continue;
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(absl::StrContains(status.error_message(), worker_address_))
      << status.error_message();
  WaitForHealth(channel_, "lockstep.v1.Inference",
                HealthCheckResponse::NOT_SERVING);

  ASSERT_NO_FATAL_FAILURE(StartWorker(worker_address_));
  WaitForHealth(channel_, "lockstep.v1.Inference",
                HealthCheckResponse::SERVING);
  EXPECT_TRUE(Generate(Request(4)).back().has_summary());
}

// Neither one that has begun nor one that comes while it is away.
TEST_F(ServingTest, TheRestartOfTheOnlyWorkerCostsNoAnswer) {
  ASSERT_NO_FATAL_FAILURE(StartWorker());
  ASSERT_NO_FATAL_FAILURE(StartGateway(absl::StrCat("--model=", ModelPath()),
                                       {{"LOCKSTEP_GROUP_WAIT", "600"}}));
  const v1::GenerateRequest request = Request(/*max_tokens=*/1000);
  const std::string undisturbed = TextOf(Generate(request));
  grpc::ClientContext context;
  const auto stream = stub_->Generate(&context, request);
  std::vector<v1::GenerateResponse> events;
  v1::GenerateResponse event;
  while (!event.has_delta() && stream->Read(&event)) events.push_back(event);
  worker_->Signal(SIGKILL);
  WaitForHealth(channel_, "lockstep.v1.Inference",
                HealthCheckResponse::NOT_SERVING);
  std::string meanwhile;
  std::thread client([&] { meanwhile = TextOf(Generate(request)); });
  ASSERT_NO_FATAL_FAILURE(StartWorker(worker_address_));
  while (stream->Read(&event)) events.push_back(event);
  client.join();
  const grpc::Status status = stream->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(TextOf(events), undisturbed);
  EXPECT_EQ(meanwhile, undisturbed);
}

TEST_F(ServingTest, TheTokenizerServiceGivesTheSameText) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  const std::string in_process = TextOf(Generate(Request(50)));
  auto tokenizer = *Process::Start(
      "tokenizer_service/tokenizer",
      {absl::StrCat("--model=", ModelPath()), "--listen=127.0.0.1:0"});
  const auto port = tokenizer->WaitForPort(kTimeout);
  ASSERT_TRUE(port.ok()) << port.status();
  ASSERT_NO_FATAL_FAILURE(
      StartGateway(absl::StrCat("--tokenizer_address=127.0.0.1:", *port)));
  EXPECT_EQ(TextOf(Generate(Request(50))), in_process);
}

TEST_F(ServingTest, SigtermLetsAnAnswerEndAndExitsWithZero) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  grpc::ClientContext context;
  const auto stream = stub_->Generate(&context, Request(/*max_tokens=*/500));
  v1::GenerateResponse event;
  ASSERT_TRUE(stream->Read(&event));
  gateway_->Signal(SIGTERM);
  while (stream->Read(&event)) continue;
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(event.has_summary());
  EXPECT_EQ(gateway_->WaitForExit(kTimeout).value_or(-1), 0);
  worker_->Signal(SIGTERM);
  EXPECT_EQ(worker_->WaitForExit(kTimeout).value_or(-1), 0);
}

// What asks for it may send SIGTERM next, as Kubernetes does.
TEST_F(ServingTest, ACallDrainsAsSigtermDoesWhichMayFollow) {
  constexpr char kKey[] = "operator-0123456789";
  const std::string keys = ::testing::TempDir() + "keys";
  testing::WriteFile(keys, absl::StrCat("ops ", kKey, " may_drain\n"));
  ASSERT_NO_FATAL_FAILURE(StartWorker());
  ASSERT_NO_FATAL_FAILURE(StartGateway(absl::StrCat("--model=", ModelPath()),
                                       {{"LOCKSTEP_API_KEYS_FILE", keys}}));
  grpc::ClientContext context;
  context.AddMetadata("authorization", absl::StrCat("Bearer ", kKey));
  const auto stream = stub_->Generate(&context, Request(/*max_tokens=*/500));
  v1::GenerateResponse event;
  ASSERT_TRUE(stream->Read(&event));
  int http_port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(
      http_address_.substr(http_address_.rfind(':') + 1), &http_port));
  testing::RawConnection client(http_port);
  client.Send(absl::StrCat("POST /drain HTTP/1.1\r\nhost: x\r\n",
                           "authorization: Bearer ", kKey,
                           "\r\ncontent-length: 0\r\n\r\n"));
  const auto answer = client.Read();
  EXPECT_EQ(answer.status, 202);
  gateway_->Signal(SIGTERM);
  while (stream->Read(&event)) continue;
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(event.has_summary());
  EXPECT_EQ(gateway_->WaitForExit(kTimeout).value_or(-1), 0);
}

TEST_F(ServingTest, SaysInOneSentenceWhyItDoesNotStart) {
  const struct {
    std::vector<std::string> arguments;
    std::string error;
  } kCases[] = {
      {{}, "gateway: --model is not set; name the worker's model"},
      {{"--model=/nowhere"}, "gateway: "},
      {{absl::StrCat("--model=", ModelPath()), "--listen=nowhere"},
       "gateway: --listen is \"nowhere\""},
      {{"--model=m", "extra"}, "gateway: \"extra\" is no flag"},
  };
  for (const auto& c : kCases) {
    const auto process = Process::Start("frontend/gateway", c.arguments);
    ASSERT_TRUE(process.ok()) << process.status();
    EXPECT_EQ((*process)->WaitForExit(kTimeout).value_or(-1), 1);
    EXPECT_TRUE(absl::StrContains((*process)->output(), c.error))
        << (*process)->output();
  }
}

}  // namespace
}  // namespace lockstep
