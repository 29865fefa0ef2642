// Every error there is, on both surfaces.

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "common/error_reason.h"
#include "common/grpc_status.h"
#include "frontend/openai/error_response.h"
#include "tests/testing/http/openai_test_fixture.h"

namespace lockstep {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using testing::FakeAnswer;
using testing::OpenAiAnswer;
using testing::OpenAiTest;
using testing::TextRequest;

// What a client is told of a reason.
struct Told {
  ErrorReason reason;
  int http;
  const char* type;
  const char* code;
};

// In the order of the enum, whose codes are gRPC's.
constexpr Told kTold[] = {
    {ErrorReason::kInvalidRequest, 400, "invalid_request_error",
     "invalid_value"},
    {ErrorReason::kInvalidApiKey, 401, "authentication_error",
     "invalid_api_key"},
    {ErrorReason::kModelNotFound, 404, "not_found_error", "not_found"},
    {ErrorReason::kRequestIdTaken, 409, "invalid_request_error",
     "already_exists"},
    {ErrorReason::kOverloaded, 429, "rate_limit_error", "rate_limit_exceeded"},
    {ErrorReason::kQueueFullRequests, 429, "rate_limit_error",
     "rate_limit_exceeded"},
    {ErrorReason::kQueueFullTokens, 429, "rate_limit_error",
     "rate_limit_exceeded"},
    {ErrorReason::kKeyLimit, 429, "rate_limit_error", "rate_limit_exceeded"},
    {ErrorReason::kSlowReader, 429, "rate_limit_error", "rate_limit_exceeded"},
    {ErrorReason::kUnavailable, 503, "service_unavailable_error",
     "server_is_overloaded"},
    {ErrorReason::kWorkerStarting, 503, "service_unavailable_error",
     "server_is_overloaded"},
    {ErrorReason::kWorkerDraining, 503, "service_unavailable_error",
     "server_is_overloaded"},
    {ErrorReason::kWorkerStopped, 503, "service_unavailable_error",
     "server_is_overloaded"},
    {ErrorReason::kGroupFailed, 503, "service_unavailable_error",
     "server_is_overloaded"},
    {ErrorReason::kWorkerUnreachable, 503, "service_unavailable_error",
     "server_is_overloaded"},
    {ErrorReason::kGatewayDraining, 503, "service_unavailable_error",
     "server_is_overloaded"},
    {ErrorReason::kDeadlineExceeded, 504, "timeout_error", "timeout"},
    {ErrorReason::kDeadlineInQueue, 504, "timeout_error", "timeout"},
    {ErrorReason::kClientCancelled, 499, "server_error", "cancelled"},
    {ErrorReason::kWorkerStopping, 400, "invalid_request_error",
     "invalid_value"},
    {ErrorReason::kInternal, 500, "server_error", "internal_error"},
    {ErrorReason::kNotFinite, 500, "server_error", "internal_error"},
};

class ErrorsTest : public OpenAiTest {
 protected:
  // The worker refuses every request so.
  void Refuse(const absl::Status& status) {
    worker_.set_script([status](const auto&) {
      FakeAnswer answer;
      answer.status = status;
      return answer;
    });
  }

  // Of a request that both surfaces are asked.
  void ExpectBoth(ErrorReason reason) {
    const ErrorReasonEntry& entry = ErrorReasons()[static_cast<size_t>(reason)];
    const Told& told = kTold[static_cast<size_t>(reason)];
    ASSERT_EQ(told.reason, reason);
    SCOPED_TRACE(entry.name);
    const absl::Status grpc = FromGrpc(Generate(TextRequest()).status);
    EXPECT_EQ(grpc.code(), entry.code);
    EXPECT_EQ(ErrorReasonOf(grpc), entry.name);
    EXPECT_THAT(ErrorMetadataOf(grpc),
                Contains(Pair("retryable", entry.retryable ? "true" : "false")));
    const OpenAiAnswer http = Chat({});
    EXPECT_EQ(http.status, told.http);
    const json& error = http.json["error"];
    EXPECT_EQ(error["type"], told.type);
    EXPECT_EQ(error["code"], told.code);
    EXPECT_EQ(error["reason"], std::string(entry.name));
    EXPECT_EQ(error["message"], std::string(grpc.message()));
    // What OpenAI's libraries would else try again.
    const bool is_tempting = told.http == 409 || told.http == 429 ||
                             told.http >= 500;
    EXPECT_EQ(absl::StrContains(http.head, "x-should-retry: false"),
              is_tempting && !entry.retryable);
    EXPECT_EQ(absl::StrContains(http.head, "retry-after: "), entry.retryable);
  }
};

TEST_F(ErrorsTest, WhatTheWorkerSaysReachesTheClient) {
  ASSERT_EQ(std::size(kTold), ErrorReasons().size());
  for (const ErrorReasonEntry& entry : ErrorReasons()) {
    // The gateway's own to say: below.
    if (entry.reason == ErrorReason::kClientCancelled) continue;
    Refuse(MakeError(entry.reason, "why."));
    ExpectBoth(entry.reason);
  }
}

// Nobody else than the client reads it.
TEST_F(ErrorsTest, ACancelledCallIsTheClients) {
  const Told& told = kTold[static_cast<size_t>(ErrorReason::kClientCancelled)];
  const http::Response response =
      openai::ErrorResponse(absl::CancelledError("the client has gone."));
  const json error = json::parse(response.body)["error"];
  EXPECT_EQ(response.status, told.http);
  EXPECT_EQ(error["type"], told.type);
  EXPECT_EQ(error["code"], told.code);
  EXPECT_EQ(error["reason"], "CLIENT_CANCELLED");
  // One that gives a request up by itself is as good as gone.
  Refuse(absl::CancelledError("enough."));
  EXPECT_EQ(ErrorReasonOf(FromGrpc(Generate(TextRequest()).status)),
            "WORKER_UNREACHABLE");
}

TEST_F(ErrorsTest, WhenToComeBackIsWhatTheWorkerExpects) {
  Refuse(MakeError(ErrorReason::kQueueFullTokens, "full.",
                   {.retry_delay = absl::Milliseconds(2500)}));
  EXPECT_EQ(RetryDelayOf(FromGrpc(Generate(TextRequest()).status)),
            absl::Milliseconds(2500));
  const OpenAiAnswer answer = Chat({});
  EXPECT_THAT(answer.head, HasSubstr("retry-after: 3\r\n"));
  EXPECT_THAT(answer.head, HasSubstr("retry-after-ms: 2500\r\n"));
}

TEST_F(ErrorsTest, AWorkerThatDoesNotServeSaysWhy) {
  const struct {
    v1::ServingState state;
    ErrorReason reason;
  } kCases[] = {
      {v1::STARTING, ErrorReason::kWorkerStarting},
      {v1::DRAINING, ErrorReason::kWorkerDraining},
      {v1::STOPPING, ErrorReason::kWorkerDraining},
      {v1::FAILED, ErrorReason::kGroupFailed},
  };
  using grpc::health::v1::HealthCheckResponse;
  for (const auto& c : kCases) {
    worker_.Stop();
    WaitForHealth(HealthCheckResponse::NOT_SERVING);
    ExpectBoth(ErrorReason::kWorkerUnreachable);
    worker_.server_info().set_state(c.state);
    worker_.Start();
    WaitForHealth(HealthCheckResponse::SERVING);
    worker_.SetServing(false);
    WaitForHealth(HealthCheckResponse::NOT_SERVING);
    ExpectBoth(c.reason);
    worker_.SetServing(true);
    WaitForHealth(HealthCheckResponse::SERVING);
  }
}

TEST_F(ErrorsTest, TheGatewaysOwnRefusalsAreTheSameOnBoth) {
  v1::GenerateRequest unknown = TextRequest(), empty = TextRequest(),
                      too_long = TextRequest(), stops = TextRequest();
  unknown.set_model("other");
  empty.set_text("");
  too_long.set_text(std::string(200, 'a'));
  stops.add_stop("");
  const struct {
    v1::GenerateRequest grpc;
    json http;
    const char* code;
    const char* param;
  } kCases[] = {
      {unknown, {{"prompt", "a"}, {"model", "other"}}, "model_not_found",
       "model"},
      {empty, {{"prompt", ""}}, "invalid_value", "prompt"},
      {too_long, {{"prompt", std::string(200, 'a')}},
       "context_length_exceeded", "prompt"},
      {stops, {{"prompt", "a"}, {"stop", {""}}}, "invalid_value", "stop"},
  };
  for (const auto& c : kCases) {
    const absl::Status grpc = FromGrpc(Generate(c.grpc).status);
    const OpenAiAnswer answer = Complete(c.http);
    const json& error = answer.json["error"];
    SCOPED_TRACE(answer.json.dump());
    EXPECT_EQ(answer.status, absl::IsNotFound(grpc) ? 404 : 400);
    EXPECT_EQ(error["reason"], ErrorReasonOf(grpc));
    EXPECT_EQ(error["code"], c.code);
    EXPECT_EQ(error["param"], c.param);
    EXPECT_THAT(answer.head, Not(HasSubstr("retry-after")));
  }
}

TEST(ErrorTable, ThePageShowsIt) {
  std::ifstream file("docs/openai.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const openai::ErrorRow& row : openai::ErrorTable()) {
    const size_t code =
        page.find(absl::StrCat("`", absl::StatusCodeToString(row.code), "`"));
    ASSERT_NE(code, page.npos) << row.code;
    const std::string line = page.substr(code, page.find('\n', code) - code);
    EXPECT_THAT(line, HasSubstr(absl::StrCat("| ", row.http_status)));
    EXPECT_THAT(line, HasSubstr(absl::StrCat("`", row.type, "`")));
    EXPECT_THAT(line, HasSubstr(absl::StrCat("`", row.code_word, "`")));
  }
}

}  // namespace
}  // namespace lockstep
