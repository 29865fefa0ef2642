// Generate calls through a whole gateway: streams, cancels, refusals.

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "frontend/grpc/responses.h"
#include "proto/inference.pb.h"
#include "tests/testing/fake_worker.h"
#include "tests/testing/gateway_test_fixture.h"
#include "tests/testing/http/raw_connection.h"
#include "tests/testing/http/scraped.h"

namespace lockstep {
namespace {

using ::lockstep::testing::AcceptedMessage;
using ::lockstep::testing::DeltaMessage;
using ::lockstep::testing::FakeAnswer;
using ::lockstep::testing::FinishMessage;
using ::lockstep::testing::GatewayTest;
using ::lockstep::testing::Hang;
using ::lockstep::testing::Outcome;
using ::lockstep::testing::Say;
using ::lockstep::testing::SummaryMessage;
using ::lockstep::testing::TextRequest;
using ::testing::HasSubstr;

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
      ->AddVarint(40, 1);
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
       "field number 40 of GenerateRequest is not known to this server."},
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

class FailoverTest : public GatewayTest {
 protected:
  // Of a stream, which ends with this code.
  void ExpectOneFailover(grpc::StatusCode code) {
    grpc::ClientContext context;
    const auto stream = stub_->Generate(&context, TextRequest());
    v1::GenerateResponse message;
    while (stream->Read(&message)) continue;
    EXPECT_EQ(stream->Finish().error_code(), code);
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto failovers = trailers.find(kFailoversTrailer);
    ASSERT_NE(failovers, trailers.end());
    EXPECT_EQ(failovers->second, "1");
  }
};

TEST_F(FailoverTest, ATrailerTellsThatAnotherGroupWentOn) {
  worker_.Stop();
  WaitForHealth(grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  worker_.model_info().set_fingerprint("bits");
  worker_.set_script([](const v1::WorkerGenerateRequest& request) {
    FakeAnswer answer = Say(request, "ab");
    if (request.resume_token_ids_size() > 0) return Say(request, "b");
    answer.messages.resize(2);  // accepted, and the first token
    answer.status = absl::UnavailableError("lost.");
    return answer;
  });
  worker_.Start();
  WaitForHealth(grpc::health::v1::HealthCheckResponse::SERVING);
  ExpectOneFailover(grpc::StatusCode::OK);

  // Of a whole answer over HTTP it is a field of the head, of a stream a
  // comment.
  const int port = gateway_->ports().http;
  const std::string path = "/v1/completions";
  EXPECT_THAT(testing::Fetch(port, path, R"({"prompt": "hi"})").head,
              HasSubstr("x-lockstep-failovers: 1\r\n"));
  EXPECT_THAT(
      testing::Fetch(port, path, R"({"prompt": "hi", "stream": true})").body,
      HasSubstr("\n\n: failovers=1\n\ndata: [DONE]"));
  EXPECT_EQ(
      testing::Scraped(metrics_.Text())["lockstep_gateway_failovers_total"], 3);
}

TEST_F(FailoverTest, ATrailerTellsSoWhereTheOtherGroupFails) {
  worker_.Stop();
  WaitForHealth(grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  worker_.model_info().set_fingerprint("bits");
  worker_.set_script([](const v1::WorkerGenerateRequest& request) {
    FakeAnswer answer = Say(request, "ab");
    answer.messages.resize(2);  // accepted, and a token
    answer.status = request.resume_token_ids_size() == 0
                        ? absl::UnavailableError("lost.")
                        : absl::InvalidArgumentError("too long.");
    return answer;
  });
  worker_.Start();
  WaitForHealth(grpc::health::v1::HealthCheckResponse::SERVING);
  ExpectOneFailover(grpc::StatusCode::INVALID_ARGUMENT);
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

}  // namespace
}  // namespace lockstep
