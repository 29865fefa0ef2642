#include "frontend/openai/service.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/error_reason.h"
#include "frontend/routing/worker_client.h"
#include "tests/testing/http/openai_test_fixture.h"

namespace lockstep {
namespace {

using nlohmann::json;
using testing::AcceptedMessage;
using testing::Accumulate;
using testing::DeltaMessage;
using testing::FakeAnswer;
using testing::Fetch;
using testing::FinishMessage;
using testing::Hang;
using ::testing::HasSubstr;
using testing::OpenAiAnswer;
using testing::PostJson;
using testing::RawConnection;
using testing::RawResponse;
using testing::SummaryMessage;

using ServiceTest = testing::OpenAiTest;

TEST_F(ServiceTest, ErrorsBeforeTheFirstByteAreResponses) {
  const auto refuse = [](const auto&) {
    FakeAnswer answer;
    answer.status = absl::InvalidArgumentError(
        "sampling.temperature is -1, it must be from 0 to 100.");
    return answer;
  };
  worker_.set_script(refuse);
  for (const bool stream : {false, true}) {
    const struct {
      json request;
      int status;
      const char* param;
      const char* code;
    } kCases[] = {
        {{{"temperature", -1}}, 400, "temperature", "invalid_value"},
        {{{"model", "other"}}, 404, "model", "model_not_found"},
        {{{"max_tokens", 100}}, 400, "messages", "context_length_exceeded"},
        {{{"tools", {{{"type", "search"}}}}},
         400,
         "tools",
         "unsupported_parameter"},
    };
    for (const auto& c : kCases) {
      json request = c.request;
      request["stream"] = stream;
      const OpenAiAnswer answer = Chat(request);
      EXPECT_EQ(answer.status, c.status) << answer.json;
      EXPECT_EQ(answer.json["error"]["param"], c.param) << answer.json;
      EXPECT_EQ(answer.json["error"]["code"], c.code) << answer.json;
    }
  }
}

TEST_F(ServiceTest, AnErrorInAStreamIsItsLastEvent) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request), DeltaMessage(0, "so far")};
    answer.status = absl::UnavailableError("broken");
    return answer;
  });
  const OpenAiAnswer answer = Chat({{"stream", true}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.done);
  EXPECT_EQ(answer.events.back()["error"]["code"], "server_is_overloaded");
  EXPECT_EQ(Chat({}).status, 503);
}

TEST_F(ServiceTest, AChoiceThatWasAbortedIsAnError) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request), FinishMessage(0, v1::ABORTED),
                       SummaryMessage()};
    return answer;
  });
  EXPECT_EQ(Chat({}).status, 503);
}

TEST_F(ServiceTest, OneOfSeveralPromptsThatFailsFailsAll) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer = Hang(request);
    if (request.prompt_token_ids_size() > 3) return answer;
    answer.then = FakeAnswer::Then::kAwaitAbort;  // for as long as it takes
    answer.status = absl::ResourceExhaustedError("the stream is too slow");
    return answer;
  });
  OpenAiAnswer answer;
  std::thread client([&] {
    answer = Complete({{"prompt", {"long", "longer", "s", "longest"}}});
  });
  worker_.WaitForRequests(4);
  for (const auto& request : worker_.requests()) {
    if (request.prompt_token_ids_size() > 3) continue;
    WorkerClient(worker_.address()).Abort(request.request_id(), {0});
  }
  client.join();
  EXPECT_EQ(answer.status, 429);
  EXPECT_THAT(answer.head, HasSubstr("retry-after: 1"));
  worker_.WaitForCancels(3);
}

TEST_F(ServiceTest, ABatchThatCanNeverWaitAsAWholeIsRefusedForGood) {
  const struct {
    ErrorReason reason;
    std::map<std::string, std::string> metadata;
    int prompts;
    int status;
    const char* error;
  } kCases[] = {
      {ErrorReason::kQueueFullRequests, {{"limit", "2"}}, 2, 429, "full."},
      {ErrorReason::kQueueFullRequests,
       {{"limit", "2"}},
       3,
       400,
       "prompt holds 3 prompts, but 2 requests wait in a worker group, the "
       "limit of --max_queued_requests; send fewer at a time."},
      {ErrorReason::kQueueFullTokens,
       {{"limit", "10"}, {"tokens", "5"}},
       2,
       429,
       "full."},
      {ErrorReason::kQueueFullTokens,
       {{"limit", "10"}, {"tokens", "11"}},
       2,
       400,
       "prompt holds 2 prompts, but of more than 10 tokens in all, the limit "
       "of --max_queued_tokens; send fewer at a time."},
      {ErrorReason::kQueueFullRequests, {}, 3, 429, "full."},
  };
  for (const auto& c : kCases) {
    worker_.set_script([&c](const auto&) {
      FakeAnswer answer;
      answer.status = MakeError(c.reason, "full.", {.metadata = c.metadata});
      return answer;
    });
    const OpenAiAnswer answer =
        Complete({{"prompt", std::vector<std::string>(c.prompts, "p")}});
    EXPECT_EQ(answer.status, c.status) << answer.json;
    EXPECT_EQ(answer.json["error"]["message"], c.error);
  }
}

TEST_F(ServiceTest, AClientThatHangsUpEndsItsRequests) {
  worker_.set_script(Hang);
  for (const bool stream : {false, true}) {
    RawConnection client(http_port());
    const std::string body =
        json({{"prompt", {"one", "two"}}, {"stream", stream}}).dump();
    client.Send(
        absl::StrCat("POST /v1/completions HTTP/1.1\r\nhost: x\r\n"
                     "content-type: application/json\r\n"
                     "content-length: ",
                     body.size(), "\r\n\r\n", body));
    worker_.WaitForRequests(stream ? 4 : 2);
    client.Close();
    worker_.WaitForCancels(stream ? 4 : 2);
  }
}

TEST_F(ServiceTest, ASlowReaderHoldsBackItsWorkerAlone) {
  constexpr int kDeltas = 5000;
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request)};
    for (int i = 0; i < kDeltas; ++i) {
      answer.messages.push_back(DeltaMessage(0, std::string(100, 'a')));
    }
    answer.messages.push_back(FinishMessage(0, v1::LENGTH));
    answer.messages.push_back(SummaryMessage());
    return answer;
  });
  RawConnection client(http_port(),
                       /*receive_buffer_bytes=*/64 << 10);
  const std::string body = json({{"messages", Hi()}, {"stream", true}}).dump();
  client.Send(
      absl::StrCat("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
                   "connection: close\r\n"
                   "content-type: application/json\r\n"
                   "content-length: ",
                   body.size(), "\r\n\r\n", body));
  worker_.WaitForRequests(1);
  EXPECT_EQ(Get("/v1/models").status, 200);  // meanwhile
  const std::string all = client.ReadAll();
  EXPECT_THAT(all, HasSubstr("data: [DONE]"));
}

TEST_F(ServiceTest, TokenizesAndBack) {
  const int port = http_port();
  EXPECT_EQ(PostJson(port, "/tokenize",
                     {{"prompt", "hé"}, {"return_token_strs", true}})
                .json,
            json({{"count", 4},
                  {"max_model_len", 100},
                  {"tokens", {256, 'h', 0xc3, 0xa9}},
                  {"token_strs", {"<bos>", "h", "\ufffd", "\ufffd"}}}));
  EXPECT_EQ(PostJson(port, "/tokenize", {{"messages", Hi()}}).json["count"],
            20);
  EXPECT_EQ(
      PostJson(port, "/detokenize", {{"tokens", {256, 'h', 0xc3, 0xa9}}}).json,
      json({{"prompt", "<bos>hé"}}));
  EXPECT_EQ(PostJson(port, "/detokenize", {{"tokens", {999}}}).status, 400);
}

TEST_F(ServiceTest, ListsItsModel) {
  const json list = json::parse(Get("/v1/models").body);
  EXPECT_EQ(list["object"], "list");
  const json& model = list["data"][0];
  EXPECT_EQ(model["id"], "fake");
  EXPECT_EQ(model["max_model_len"], 100);
  EXPECT_EQ(json::parse(Get("/v1/models/fake").body), model);
  const RawResponse unknown = Get("/v1/models/org/other");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(json::parse(unknown.body)["error"]["code"], "model_not_found");
}

TEST_F(ServiceTest, SaysHowItIs) {
  EXPECT_TRUE(json::parse(Get("/version").body).contains("version"));
  for (const char* path :
       {"/health", "/ready", "/readiness", "/live", "/liveness"}) {
    EXPECT_EQ(Get(path).status, 200) << path;
  }
  worker_.SetServing(false);
  WaitForHealth(grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Get("/ready").status, 503);
  EXPECT_EQ(Get("/live").status, 200);
  EXPECT_EQ(Chat({}).status, 503);
}

TEST_F(ServiceTest, ABodyOfTooManyValuesIsRefused) {
  std::string body = R"({"prompt":[1)";
  for (int i = 0; i < 1'200'000; ++i) body += ",1";
  const RawResponse response =
      Fetch(http_port(), "/v1/completions", body + "]}");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("JSON values; at most as many"));
}

TEST_F(ServiceTest, DrainAnswersProbesAndLetsRequestsFinish) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request), DeltaMessage(0, "slow")};
    answer.then = FakeAnswer::Then::kAwaitAbort;
    answer.after_abort = {FinishMessage(0, v1::LENGTH), SummaryMessage()};
    return answer;
  });
  OpenAiAnswer answer;
  std::thread client([&] { answer = Chat({{"stream", true}}); });
  worker_.WaitForRequests(1);
  std::thread drain([&] { gateway_->Drain(); });
  while (Get("/ready").status == 200) continue;
  EXPECT_EQ(Get("/live").status, 200);
  EXPECT_EQ(Chat({}).status, 503);
  WorkerClient(worker_.address())
      .Abort(worker_.requests()[0].request_id(), {0});
  client.join();
  EXPECT_TRUE(answer.done);
  EXPECT_EQ(Accumulate(answer.events)["choices"][0]["message"]["content"],
            "slow");
  drain.join();
}

}  // namespace
}  // namespace lockstep
