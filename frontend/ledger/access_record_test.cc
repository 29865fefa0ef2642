#include "frontend/ledger/access_record.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

AccessRecord::Request HttpRequest() {
  return {.surface = "http",
          .method = "POST",
          .route = "/v1/chat/completions",
          .client = "10.0.0.9",
          .request_id = "r1",
          .trace = {.trace_id = "0af7", .span_id = "b7ad"},
          .arrived = absl::FromUnixMillis(1'700'000'000'123)};
}

AnswerRecord Answer() {
  AnswerRecord answer;
  answer.request_id = "r1";
  answer.key_name = "alice";
  answer.model = "tiny";
  answer.usage.set_prompt_tokens(12);
  answer.usage.set_cached_tokens(8);
  answer.usage.set_completion_tokens(24);
  answer.first_token = absl::Milliseconds(35);
  answer.finish_reasons = {v1::STOP};
  return answer;
}

constexpr absl::Duration kTook = absl::Microseconds(410'500);

TEST(AccessRecordTest, ALineOfAnAnswerOverHttp) {
  AccessRecord record(HttpRequest());
  record.SetHttpStatus(200);
  record.AddAnswer(Answer());
  EXPECT_EQ(record.code(), "200");
  EXPECT_EQ(
      record.ToJson(HttpRequest().arrived + kTook),
      R"({"time":"2023-11-14T22:13:20.123Z","request_id":"r1",)"
      R"("trace_id":"0af7","span_id":"b7ad","client":"10.0.0.9",)"
      R"("key":"alice","surface":"http","method":"POST",)"
      R"("route":"/v1/chat/completions",)"
      R"("model":"tiny","http_status":200,"status":"OK","finish":["STOP"],)"
      R"("prompt_tokens":12,"cached_tokens":8,"completion_tokens":24,)"
      R"("first_token_ms":35.0,"total_ms":410.5})"
      "\n");
}

TEST(AccessRecordTest, ALineOfARefusalOverGrpcHasItsReasonAndNotItsWords) {
  AccessRecord record({.surface = "grpc",
                       .route = "Generate",
                       .client = "10.0.0.9",
                       .trace = {.trace_id = "0af7", .span_id = "b7ad"},
                       .arrived = HttpRequest().arrived});
  AnswerRecord answer;
  answer.request_id = "of-the-message";
  answer.status = absl::InvalidArgumentError("the client's own text");
  record.AddAnswer(answer);
  record.SetGrpcStatus(answer.status);
  EXPECT_EQ(record.code(), "INVALID_ARGUMENT");
  EXPECT_EQ(record.ToJson(HttpRequest().arrived + kTook),
            R"({"time":"2023-11-14T22:13:20.123Z",)"
            R"("request_id":"of-the-message","trace_id":"0af7",)"
            R"("span_id":"b7ad","client":"10.0.0.9","surface":"grpc",)"
            R"("route":"Generate","status":"INVALID_ARGUMENT",)"
            R"("reason":"INVALID_REQUEST","finish":[],"prompt_tokens":0,)"
            R"("cached_tokens":0,"completion_tokens":0,"total_ms":410.5})"
            "\n");
}

TEST(AccessRecordTest, WhatHasNoAnswerHasNoTokens) {
  AccessRecord record(HttpRequest());
  record.SetHttpStatus(404);
  EXPECT_EQ(record.ToJson(HttpRequest().arrived),
            R"({"time":"2023-11-14T22:13:20.123Z","request_id":"r1",)"
            R"("trace_id":"0af7","span_id":"b7ad","client":"10.0.0.9",)"
            R"("surface":"http","method":"POST",)"
            R"("route":"/v1/chat/completions","http_status":404,)"
            R"("total_ms":0.0})"
            "\n");
}

TEST(AccessRecordTest, TheAnswersOfSeveralPromptsAddUp) {
  AccessRecord record(HttpRequest());
  AnswerRecord second = Answer();
  second.first_token = absl::Milliseconds(20);
  second.failovers = 1;
  second.finish_reasons = {v1::LENGTH};
  record.AddAnswer(Answer());
  record.AddAnswer(second);
  const std::string line = record.ToJson(HttpRequest().arrived);
  for (const char* part : {R"("finish":["STOP","LENGTH"])",
                           R"("prompt_tokens":24)", R"("completion_tokens":48)",
                           R"("failovers":1)", R"("first_token_ms":20.0)"}) {
    EXPECT_NE(line.find(part), line.npos) << part << " of " << line;
  }
}

TEST(AccessRecordTest, AClientThatLeftBeforeItsAnswer) {
  AccessRecord record(HttpRequest());
  EXPECT_EQ(record.code(), "499");
  record.SetHttpStatus(AccessRecord::kClientGone);
  record.SetHttpStatus(200);  // nobody saw it
  EXPECT_EQ(record.code(), "499");
}

TEST(AccessRecordTest, NothingThatAClientSendsBreaksALine) {
  AccessRecord::Request request = HttpRequest();
  request.method = "A\"B\n\xff";
  AccessRecord record(request);
  const std::string line = record.ToJson(request.arrived);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_NE(line.find(R"("method":"A\"B\n\ufffd")"), line.npos) << line;
}

}  // namespace
}  // namespace lockstep
