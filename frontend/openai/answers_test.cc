// The shapes of answers, whole and streamed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/testing/http/openai_test_fixture.h"

namespace lockstep {
namespace {

using nlohmann::json;
using testing::AcceptedMessage;
using testing::Accumulate;
using testing::DeltaMessage;
using testing::FakeAnswer;
using testing::FinishMessage;
using ::testing::HasSubstr;
using testing::OpenAiAnswer;
using testing::Say;
using ::testing::StartsWith;
using testing::SummaryMessage;

using AnswersTest = testing::OpenAiTest;

TEST_F(AnswersTest, AnswersAChatAsAWhole) {
  const OpenAiAnswer answer = Chat({{"model", "fake"}, {"max_tokens", 4}});
  ASSERT_EQ(answer.status, 200) << answer.json;
  json whole = answer.json;
  EXPECT_THAT(whole["id"].get<std::string>(), StartsWith("chatcmpl-"));
  EXPECT_GT(whole["created"], 1'700'000'000);
  whole.erase("id");
  whole.erase("created");
  EXPECT_EQ(
      whole,
      json({{"object", "chat.completion"},
            {"model", "fake"},
            {"system_fingerprint", nullptr},
            {"choices",
             {{{"index", 0},
               {"message",
                {{"role", "assistant"},
                 {"content", "né!"},
                 {"refusal", nullptr}}},
               {"logprobs", nullptr},
               {"finish_reason", "length"},
               {"stop_reason", nullptr}}}},
            {"usage",
             {{"prompt_tokens", 20},
              {"completion_tokens", 4},
              {"total_tokens", 24},
              {"prompt_tokens_details", {{"cached_tokens", 1}}},
              {"completion_tokens_details", {{"reasoning_tokens", 0}}}}}}));
  const auto request = worker_.requests()[0];
  EXPECT_EQ(request.sampling().max_tokens(), 4);
  EXPECT_EQ(request.request_id(), answer.json["id"].get<std::string>());
}

TEST_F(AnswersTest, StreamsAChat) {
  const OpenAiAnswer answer =
      Chat({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  EXPECT_THAT(answer.head, HasSubstr("cache-control: no-cache"));
  EXPECT_THAT(answer.head, HasSubstr("x-accel-buffering: no"));
  EXPECT_TRUE(answer.done);
  ASSERT_EQ(answer.events.size(), 6);  // role, n, é, !, finish, usage
  for (const json& event : answer.events) {
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    EXPECT_EQ(event["id"], answer.events[0]["id"]);
    EXPECT_TRUE(event.contains("usage"));
  }
  const auto delta = [&](int i) { return answer.events[i]["choices"][0]; };
  EXPECT_EQ(delta(0)["delta"], json({{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(delta(2)["delta"], json({{"content", "é"}}));
  EXPECT_EQ(delta(2)["finish_reason"], nullptr);
  EXPECT_EQ(delta(4)["delta"], json::object());
  EXPECT_EQ(delta(4)["finish_reason"], "length");
  EXPECT_EQ(answer.events[4]["usage"], nullptr);
  EXPECT_EQ(answer.events[5]["choices"], json::array());
  EXPECT_EQ(answer.events[5]["usage"]["completion_tokens"], 4);
}

TEST_F(AnswersTest, CountsInEveryChunkIfAsked) {
  const OpenAiAnswer answer =
      Complete({{"prompt", "hi"},
                {"stream", true},
                {"stream_options",
                 {{"include_usage", true}, {"continuous_usage_stats", true}}}});
  EXPECT_EQ(answer.events[0]["usage"]["completion_tokens"], 1);
  EXPECT_EQ(answer.events[1]["usage"]["completion_tokens"], 3);  // é: 2 tokens
}

TEST_F(AnswersTest, CompletesStringsIdsAndListsOfThem) {
  const struct {
    json prompt;
    std::vector<size_t> tokens;  // of each prompt; BOS goes before a text
  } kCases[] = {
      {"hi", {3}},
      {{"hi", "you"}, {3, 4}},
      {{104, 105}, {2}},
      {json::parse("[[104],[105,106]]"), {1, 2}},
  };
  for (const auto& c : kCases) {
    const size_t before = worker_.requests().size();
    const OpenAiAnswer answer = Complete({{"prompt", c.prompt}});
    ASSERT_EQ(answer.status, 200) << answer.json;
    EXPECT_THAT(answer.json["id"].get<std::string>(), StartsWith("cmpl-"));
    EXPECT_EQ(answer.json["object"], "text_completion");
    ASSERT_EQ(answer.json["choices"].size(), c.tokens.size());
    size_t sum = 0;
    for (size_t i = 0; i < c.tokens.size(); ++i) {
      EXPECT_EQ(answer.json["choices"][i]["text"], "né!");
      EXPECT_EQ(answer.json["choices"][i]["index"], i);
      EXPECT_EQ(worker_.requests()[before].sampling().max_tokens(), 16);
      sum += c.tokens[i];
    }
    EXPECT_EQ(answer.json["usage"]["prompt_tokens"], sum);
    EXPECT_EQ(answer.json["usage"]["completion_tokens"], 4 * c.tokens.size());
  }
}

// Scripted: prompt log-probabilities first, then what `text` says.
FakeAnswer WithPromptLogprobs(const v1::WorkerGenerateRequest& request,
                              const std::string& text) {
  FakeAnswer answer = Say(request, text);
  v1::WorkerGenerateResponse prompt;
  for (int i = 1; i < request.prompt_token_ids_size(); ++i) {
    auto* token =
        prompt.mutable_delta()->add_prompt_logprobs()->mutable_token();
    token->set_token_id(request.prompt_token_ids(i));
    token->set_logprob(-i);
    token->set_rank(1);
  }
  answer.messages.insert(answer.messages.begin() + 1, prompt);
  for (auto& message : answer.messages) {
    for (const uint32_t id : message.delta().token_ids()) {
      auto* position = message.mutable_delta()->add_logprobs();
      position->mutable_token()->set_token_id(id);
      position->mutable_token()->set_logprob(-0.5);
      *position->add_top() = position->token();
      position->mutable_top(0)->set_token_id('z');
      position->mutable_top(0)->set_logprob(
          -std::numeric_limits<float>::infinity());
    }
  }
  return answer;
}

TEST_F(AnswersTest, EchoesThePromptWithItsLogprobs) {
  worker_.set_script(
      [](const auto& request) { return WithPromptLogprobs(request, "é"); });
  for (const bool stream : {false, true}) {
    const OpenAiAnswer answer = Complete({{"prompt", "hi"},
                                          {"echo", true},
                                          {"logprobs", 1},
                                          {"stream", stream}});
    ASSERT_EQ(answer.status, 200) << answer.json;
    const json whole = stream ? Accumulate(answer.events) : answer.json;
    EXPECT_EQ(whole["choices"][0]["text"], "hié");
    EXPECT_EQ(whole["choices"][0]["logprobs"],
              json({{"tokens", {"<bos>", "h", "i", "\ufffd", "\ufffd"}},
                    {"token_logprobs", {nullptr, -1.0, -2.0, -0.5, -0.5}},
                    {"top_logprobs",
                     {nullptr,
                      {{"h", -1.0}},
                      {{"i", -2.0}},
                      {{"z", -9999.0}, {"\ufffd", -0.5}},
                      {{"z", -9999.0}, {"\ufffd", -0.5}}}},
                    {"text_offset", {0, 5, 6, 7, 8}}}));
  }
}

TEST_F(AnswersTest, ScoresAPromptWithoutAnAnswer) {
  worker_.set_script([](const auto& request) {
    EXPECT_EQ(request.sampling().max_tokens(), 1);
    return WithPromptLogprobs(request, "x");
  });
  const OpenAiAnswer answer = Complete(
      {{"prompt", "hi"}, {"echo", true}, {"logprobs", 0}, {"max_tokens", 0}});
  ASSERT_EQ(answer.status, 200) << answer.json;
  EXPECT_EQ(answer.json["choices"][0]["text"], "hi");
  EXPECT_EQ(answer.json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer.json["choices"][0]["logprobs"]["token_logprobs"],
            json({nullptr, -1.0, -2.0}));
  EXPECT_EQ(answer.json["usage"]["completion_tokens"], 0);
}

TEST_F(AnswersTest, ChatLogprobsHaveTheBytesOfATokenThatIsHalfACharacter) {
  worker_.set_script(
      [](const auto& request) { return WithPromptLogprobs(request, "é"); });
  const OpenAiAnswer answer = Chat({{"logprobs", true},
                                    {"top_logprobs", 1},
                                    {"prompt_logprobs", 0},
                                    {"return_token_ids", true}});
  ASSERT_EQ(answer.status, 200) << answer.json;
  EXPECT_EQ(
      answer.json["choices"][0]["logprobs"]["content"][0],
      json({{"token", "\ufffd"},
            {"logprob", -0.5},
            {"bytes", {0xc3}},
            {"top_logprobs",
             {{{"token", "z"}, {"logprob", -9999.0}, {"bytes", {'z'}}}}}}));
  EXPECT_EQ(answer.json["choices"][0]["token_ids"], json({0xc3, 0xa9}));
  EXPECT_EQ(answer.json["prompt_token_ids"].size(), 20);
  ASSERT_EQ(answer.json["prompt_logprobs"].size(), 20);
  EXPECT_EQ(answer.json["prompt_logprobs"][0], nullptr);
  EXPECT_EQ(answer.json["prompt_logprobs"][1]["91"],
            json({{"logprob", -1.0}, {"rank", 1}, {"decoded_token", "["}}));
}

json Tools() {
  return json::array({{{"type", "function"}, {"function", {{"name", "f"}}}}});
}

FakeAnswer Call(const v1::WorkerGenerateRequest& request) {
  FakeAnswer answer =
      Say(request,
          "<think>hm</think>So:\n<tool_call>{\"name\": \"f\", \"arguments\": "
          "{\"a\": 1}}</tool_call>");
  answer.messages[answer.messages.size() - 2] = FinishMessage(0, v1::STOP);
  return answer;
}

TEST_F(AnswersTest, TellsThoughtsWordsAndCallsApart) {
  worker_.set_script(Call);
  const OpenAiAnswer answer = Chat({{"tools", Tools()}});
  ASSERT_EQ(answer.status, 200) << answer.json;
  json choice = answer.json["choices"][0];
  json& call = choice["message"]["tool_calls"][0];
  EXPECT_THAT(call["id"].get<std::string>(), StartsWith("call_"));
  call.erase("id");
  EXPECT_EQ(
      choice["message"],
      json({{"role", "assistant"},
            {"content", "So:"},
            {"refusal", nullptr},
            {"reasoning", "hm"},
            {"reasoning_content", "hm"},
            {"tool_calls",
             {{{"type", "function"},
               {"function", {{"name", "f"}, {"arguments", "{\"a\": 1}"}}}}}}}));
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(
      answer.json["usage"]["completion_tokens_details"]["reasoning_tokens"],
      11);
}

TEST_F(AnswersTest, StreamsACallByItsNameAndThenItsArguments) {
  worker_.set_script(Call);
  const OpenAiAnswer answer =
      Chat({{"tools", Tools()},
            {"stream", true},
            {"stream_options", {{"include_usage", true}}}});
  std::vector<json> calls;
  std::string reasoning;
  for (const json& event : answer.events) {
    if (event["choices"].empty()) continue;
    const json& delta = event["choices"][0]["delta"];
    if (delta.contains("tool_calls")) calls.push_back(delta["tool_calls"][0]);
    EXPECT_EQ(delta.value("reasoning", ""),
              delta.value("reasoning_content", ""));
    reasoning += delta.value("reasoning", "");
  }
  EXPECT_EQ(reasoning, "hm");
  ASSERT_GT(calls.size(), 2);
  EXPECT_THAT(calls[0]["id"].get<std::string>(), StartsWith("call_"));
  calls[0].erase("id");
  EXPECT_EQ(calls[0], json({{"index", 0},
                            {"type", "function"},
                            {"function", {{"name", "f"}, {"arguments", ""}}}}));
  EXPECT_EQ(calls[1], json({{"index", 0}, {"function", {{"arguments", "{"}}}}));
  const json whole = Accumulate(answer.events);
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_EQ(whole["usage"]["completion_tokens_details"]["reasoning_tokens"],
            11);
}

// Clients of before tools look for it under this name.
TEST_F(AnswersTest, ACallOfAFunctionIsItsFunctionCall) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer = Call(request);
    answer.messages.resize(answer.messages.size() - 2);
    answer.then = FakeAnswer::Then::kAwaitAbort;
    answer.after_abort = {FinishMessage(0, v1::ABORTED), SummaryMessage()};
    return answer;
  });
  json request = {{"functions", json::array({Tools()[0]["function"]})}};
  const json call = {{"name", "f"}, {"arguments", "{\"a\": 1}"}};
  const OpenAiAnswer answer = Chat(request);
  ASSERT_EQ(answer.status, 200) << answer.json;
  const json& choice = answer.json["choices"][0];
  EXPECT_EQ(choice["message"]["function_call"], call);
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
  EXPECT_EQ(choice["finish_reason"], "function_call");

  request["stream"] = true;
  json streamed = {{"name", ""}, {"arguments", ""}};
  std::string reason;
  for (const json& event : Chat(request).events) {
    const json& part = event["choices"][0];
    if (part["finish_reason"].is_string()) reason = part["finish_reason"];
    EXPECT_FALSE(part["delta"].contains("tool_calls"));
    const json added = part["delta"].value("function_call", json::object());
    for (const auto& [name, text] : added.items()) {
      streamed[name] =
          streamed[name].get<std::string>() + text.get<std::string>();
    }
  }
  EXPECT_EQ(streamed, call);
  EXPECT_EQ(reason, "function_call");
}

TEST_F(AnswersTest, ACallThatIsCutOffEndsWithLength) {
  worker_.set_script([](const auto& request) {
    return Say(request, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a");
  });
  const OpenAiAnswer answer = Chat({{"tools", Tools()}});
  const json& choice = answer.json["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["message"]["content"], nullptr);
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"],
            "{\"a");
}

TEST_F(AnswersTest, WithoutToolsACallIsContent) {
  worker_.set_script(Call);
  const OpenAiAnswer answer = Chat({{"include_reasoning", false}});
  const json& choice = answer.json["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["message"],
            json({{"role", "assistant"},
                  {"content",
                   "So:\n<tool_call>{\"name\": \"f\", \"arguments\": "
                   "{\"a\": 1}}</tool_call>"},
                  {"refusal", nullptr}}));
}

TEST_F(AnswersTest, OneCallMayBeTheEnd) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer = Call(request);
    answer.messages.resize(answer.messages.size() - 2);
    answer.then = FakeAnswer::Then::kAwaitAbort;
    answer.after_abort = {FinishMessage(0, v1::ABORTED), SummaryMessage()};
    return answer;
  });
  const OpenAiAnswer answer =
      Chat({{"tools", Tools()}, {"parallel_tool_calls", false}});
  ASSERT_EQ(answer.status, 200) << answer.json;
  EXPECT_EQ(answer.json["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_EQ(worker_.aborts().size(), 1);
}

TEST_F(AnswersTest, SaysWhatStoppedAChoice) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {
        AcceptedMessage(request),     DeltaMessage(0, "one. two"),
        FinishMessage(0, v1::LENGTH), FinishMessage(1, v1::STOP),
        FinishMessage(2, v1::STOP),   SummaryMessage()};
    answer.messages[3].mutable_finish()->set_stop_token_id('q');
    answer.messages[4].mutable_finish()->set_stop_token_id(257);  // EOS
    return answer;
  });
  const OpenAiAnswer answer =
      Chat({{"n", 3}, {"stop", "."}, {"stop_token_ids", {'q'}}});
  ASSERT_EQ(answer.status, 200) << answer.json;
  const json& choices = answer.json["choices"];
  EXPECT_EQ(choices[0]["message"]["content"], "one");
  EXPECT_EQ(choices[0]["stop_reason"], ".");
  EXPECT_EQ(choices[1]["stop_reason"], int{'q'});
  EXPECT_EQ(choices[2]["stop_reason"], nullptr);
  for (const json& choice : choices) EXPECT_EQ(choice["finish_reason"], "stop");
}

}  // namespace
}  // namespace lockstep
