#include "frontend/gateway.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/grpc_server.h"
#include "common/health.grpc.pb.h"
#include "proto/inference.grpc.pb.h"
#include "tests/testing/fake_tokenizer.h"
#include "tests/testing/fake_worker.h"
#include "tests/testing/reflection_client.h"

namespace lockstep {
namespace {

using ::grpc::health::v1::HealthCheckResponse;
using ::lockstep::testing::AcceptedMessage;
using ::lockstep::testing::DeltaMessage;
using ::lockstep::testing::FakeAnswer;
using ::lockstep::testing::FakeWorker;
using ::lockstep::testing::FinishMessage;
using ::lockstep::testing::Say;
using ::lockstep::testing::SummaryMessage;

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

FakeAnswer Hang(const v1::WorkerGenerateRequest& request) {
  FakeAnswer answer;
  answer.messages = {AcceptedMessage(request)};
  answer.then = FakeAnswer::Then::kAwaitCancel;
  return answer;
}

v1::GenerateRequest TextRequest() {
  v1::GenerateRequest request;
  request.set_text("hi");
  return request;
}

// A client, a gateway and a worker, each on a port of its own.
class GatewayTest : public ::testing::Test {
 protected:
  GatewayTest() {
    worker_.set_script([](const auto& request) { return Say(request, "né!"); });
    worker_.Start();
    GatewayOptions options;
    options.listen = "127.0.0.1:0";
    options.worker_address = worker_.address();
    options.drain_timeout = absl::Seconds(30);
    auto gateway = Gateway::Start(options, &tokenizer_,
                                  [this](const ServedModel& model, int port) {
                                    EXPECT_EQ(model.name, "fake");
                                    EXPECT_NE(port, 0);
                                    serving_.Notify();
                                  });
    EXPECT_TRUE(gateway.ok()) << gateway.status();
    gateway_ = *std::move(gateway);
    channel_ = grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", gateway_->port()),
        grpc::InsecureChannelCredentials(), ChannelArguments());
    stub_ = v1::Inference::NewStub(channel_);
    serving_.WaitForNotification();
  }

  Outcome Generate(const v1::GenerateRequest& request) {
    grpc::ClientContext context;
    Outcome outcome;
    const auto stream = stub_->Generate(&context, request);
    v1::GenerateResponse message;
    while (stream->Read(&message)) outcome.messages.push_back(message);
    outcome.status = stream->Finish();
    return outcome;
  }

  // Follows the health of the gateway up to a status.
  void WaitForHealth(HealthCheckResponse::ServingStatus status) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(v1::Inference::service_full_name());
    const auto stream =
        grpc::health::v1::Health::NewStub(channel_)->Watch(&context, request);
    HealthCheckResponse health;
    while (stream->Read(&health) && health.status() != status) continue;
    EXPECT_EQ(health.status(), status);
    context.TryCancel();
    stream->Finish();
  }

  FakeWorker worker_;
  FakeTokenizer tokenizer_;
  absl::Notification serving_;
  std::unique_ptr<Gateway> gateway_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Inference::Stub> stub_;
};

TEST_F(GatewayTest, StreamsAnAnswer) {
  v1::GenerateRequest request = TextRequest();
  request.set_request_id("r-1");
  const Outcome outcome = Generate(request);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  ASSERT_EQ(outcome.messages.size(), 7);  // accepted, 4 bytes, finish, summary
  EXPECT_EQ(outcome.messages[0].accepted().request_id(), "r-1");
  EXPECT_EQ(outcome.messages[0].accepted().model(), "fake");
  EXPECT_EQ(outcome.messages[0].accepted().prompt_tokens(), 3);
  EXPECT_EQ(outcome.messages[2].delta().text(), "");  // half a character
  EXPECT_EQ(outcome.messages[2].delta().token_ids_size(), 1);
  EXPECT_EQ(outcome.messages[5].finish().reason(), v1::LENGTH);
  EXPECT_EQ(outcome.messages[6].summary().usage().completion_tokens(), 4);
  EXPECT_EQ(outcome.messages[6].summary().timing().last_token_us(), 9);
  EXPECT_EQ(outcome.Text(), "né!");
}

TEST_F(GatewayTest, ChoicesInterleave) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request), DeltaMessage(1, "on"),
                       DeltaMessage(0, "an"),    FinishMessage(0, v1::STOP),
                       DeltaMessage(1, "e"),     FinishMessage(1, v1::LENGTH),
                       SummaryMessage()};
    return answer;
  });
  v1::GenerateRequest request = TextRequest();
  request.mutable_sampling()->set_n(2);
  const Outcome outcome = Generate(request);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  EXPECT_EQ(outcome.Text(0), "an");
  EXPECT_EQ(outcome.Text(1), "one");
}

TEST_F(GatewayTest, HeadersComeBeforeTheFirstToken) {
  worker_.set_script(Hang);
  grpc::ClientContext context;
  const auto stream = stub_->Generate(&context, TextRequest());
  stream->WaitForInitialMetadata();
  context.TryCancel();
  stream->Finish();
}

TEST_F(GatewayTest, AClientThatHangsUpCancelsAtTheWorker) {
  worker_.set_script(Hang);
  {
    grpc::ClientContext context;
    const auto stream = stub_->Generate(&context, TextRequest());
    v1::GenerateResponse accepted;
    ASSERT_TRUE(stream->Read(&accepted));
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  worker_.WaitForCancels(1);
}

TEST_F(GatewayTest, ADeadlineReachesTheWorker) {
  worker_.set_script(Hang);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(200));
  const auto stream = stub_->Generate(&context, TextRequest());
  v1::GenerateResponse message;
  while (stream->Read(&message)) continue;
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  worker_.WaitForCancels(1);
}

TEST_F(GatewayTest, ASlowReaderHoldsItsOwnStreamOnly) {
  constexpr int kDeltas = 8000;
  const std::string kPiece(1000, 'x');
  worker_.set_script([&](const auto& request) {
    if (request.sampling().max_tokens() == 1) return Say(request, "y");
    FakeAnswer answer;
    answer.messages.assign(kDeltas, DeltaMessage(0, kPiece));
    answer.messages.push_back(FinishMessage(0, v1::LENGTH));
    answer.messages.push_back(SummaryMessage());
    return answer;
  });
  grpc::ClientContext context;
  const auto slow = stub_->Generate(&context, TextRequest());
  v1::GenerateResponse message;
  ASSERT_TRUE(slow->Read(&message));

  v1::GenerateRequest quick = TextRequest();
  quick.mutable_sampling()->set_max_tokens(1);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(Generate(quick).Text(), "y");
  }
  EXPECT_LT(worker_.messages_written(), kDeltas);

  size_t bytes = 0;
  do {
    bytes += message.delta().text().size();
  } while (slow->Read(&message));
  EXPECT_TRUE(slow->Finish().ok());
  EXPECT_EQ(bytes, kDeltas * kPiece.size());
}

TEST_F(GatewayTest, AClientThatNeverReadsCanHangUp) {
  worker_.set_script([&](const auto&) {
    FakeAnswer answer;
    answer.messages.assign(8000, DeltaMessage(0, std::string(1000, 'x')));
    answer.then = FakeAnswer::Then::kAwaitCancel;
    return answer;
  });
  {
    grpc::ClientContext context;
    const auto stream = stub_->Generate(&context, TextRequest());
    worker_.WaitForRequests(1);
    context.TryCancel();
    stream->Finish();
  }
  worker_.WaitForCancels(1);
}

TEST_F(GatewayTest, RefusalsArriveAsTheyWereWritten) {
  worker_.set_script([](const auto&) {
    FakeAnswer answer;
    answer.status = absl::InvalidArgumentError(
        "sampling.temperature is -1; it must be 0 to 100.");
    return answer;
  });
  const auto with_chat = [](const std::string& role) {
    v1::GenerateRequest request;
    auto* message = request.mutable_chat()->add_messages();
    message->set_role(role);
    message->set_content("roles must alternate");
    return request;
  };
  v1::GenerateRequest wrong_model = TextRequest();
  wrong_model.set_model("huge");
  v1::GenerateRequest long_text;
  long_text.set_text(std::string(10'000'000, 'a'));
  v1::GenerateRequest unknown_field = TextRequest();
  unknown_field.GetReflection()
      ->MutableUnknownFields(&unknown_field)
      ->AddVarint(11, 1);
  const struct {
    v1::GenerateRequest request;
    grpc::StatusCode code;
    std::string error;
  } kCases[] = {
      {{},
       grpc::StatusCode::INVALID_ARGUMENT,
       "there is no prompt; set one of text, chat and token_ids."},
      {TextRequest(), grpc::StatusCode::INVALID_ARGUMENT,
       "sampling.temperature is -1; it must be 0 to 100."},
      {wrong_model, grpc::StatusCode::NOT_FOUND,
       "the model \"huge\" is not served here; the model served is \"fake\"."},
      {long_text, grpc::StatusCode::INVALID_ARGUMENT,
       "text is 10000000 bytes long; at most 12800 are allowed, 128 for each "
       "of the 100 tokens of the context."},
      {unknown_field, grpc::StatusCode::INVALID_ARGUMENT,
       "field number 11 of GenerateRequest is not known to this server."},
      {with_chat("raise"), grpc::StatusCode::INVALID_ARGUMENT,
       "chat.messages cannot be rendered: roles must alternate"},
  };
  for (const auto& c : kCases) {
    const Outcome outcome = Generate(c.request);
    EXPECT_EQ(outcome.status.error_code(), c.code);
    EXPECT_EQ(outcome.status.error_message(), c.error);
    EXPECT_TRUE(outcome.messages.empty());
  }
}

TEST_F(GatewayTest, BytesThatAreNoTextAreRefusedNamingTheField) {
  const std::string bytes =
      "\x1a\x03"
      "ab\xff";  // text: "ab\xff"
  const grpc::Slice slice(bytes);
  grpc::ByteBuffer request(&slice, 1), response;
  grpc::ClientContext context;
  grpc::Status status;
  absl::Notification done;
  grpc::GenericStub(channel_).UnaryCall(
      &context, "/lockstep.v1.Inference/Generate", {}, &request, &response,
      [&](grpc::Status result) {
        status = std::move(result);
        done.Notify();
      });
  done.WaitForNotification();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "text is no valid UTF-8: its byte 2 starts no character.");
}

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
  EXPECT_EQ(broken.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  WaitForHealth(HealthCheckResponse::NOT_SERVING);
  const Outcome refused = Generate(TextRequest());
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(refused.status.error_message(),
            absl::StrCat("the worker at ", worker_.address(),
                         " cannot be reached; start it, or name another with "
                         "--worker_address."));

  worker_.set_script([](const auto& request) { return Say(request, "back"); });
  worker_.Start();
  WaitForHealth(HealthCheckResponse::SERVING);
  EXPECT_EQ(Generate(TextRequest()).Text(), "back");
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
  // Somebody ends the request while the gateway drains.
  WorkerClient(worker_.address())
      .Abort(worker_.requests()[0].request_id(), {0});
  while (stream->Read(&message)) continue;
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(message.has_summary());
  drain.join();
}

TEST_F(GatewayTest, WhatDoesNotEndInTimeIsCancelled) {
  worker_.set_script(Hang);
  Outcome outcome;
  std::thread client([&] { outcome = Generate(TextRequest()); });
  worker_.WaitForRequests(1);
  gateway_ = nullptr;
  client.join();
  EXPECT_FALSE(outcome.status.ok());
  worker_.WaitForCancels(1);
}

TEST(GatewayStart, APortInUseIsOneSentence) {
  auto other = GrpcServer::Start("127.0.0.1:0", "listen", {}, {});
  ASSERT_TRUE(other.ok());
  FakeTokenizer tokenizer;
  GatewayOptions options;
  options.listen = absl::StrCat("127.0.0.1:", (*other)->port());
  options.worker_address = "127.0.0.1:1";
  EXPECT_EQ(Gateway::Start(options, &tokenizer, nullptr).status().message(),
            absl::StrCat("cannot listen on ", options.listen,
                         ": the address is in use or not of this host; choose "
                         "another with --listen."));
}

}  // namespace
}  // namespace lockstep
