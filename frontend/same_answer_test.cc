// For random requests: a stream adds up to the whole answer, and both are what
// gRPC says.

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/gateway_test_fixture.h"
#include "tests/testing/http/openai_client.h"

namespace lockstep {
namespace {

using nlohmann::json;
using testing::AcceptedMessage;
using testing::Accumulate;
using testing::FakeAnswer;
using testing::GatewayTest;
using testing::Outcome;
using testing::PostJson;
using testing::SummaryMessage;

constexpr int kRequests = 500;

// Parts of what a chat's model writes around thoughts and calls.
constexpr absl::string_view kParts[] = {"<think>",
                                        "</think>",
                                        "<tool_call>",
                                        "</tool_call>",
                                        "{\"name\": \"f\", \"arguments\": {",
                                        "\"a\": [1, \"}\"]",
                                        "}}",
                                        "<tool"};

// Tokens that make whole and half characters, and parts of stop strings.
uint32_t RandomToken(std::mt19937_64& random) {
  static constexpr absl::string_view kBytes = "ab. \n\xc3\xa9\xf0\x9f\x98\x80";
  if (random() % 20 == 0) return 257;  // <eos>, as a token like any other
  return static_cast<uint8_t>(kBytes[random() % kBytes.size()]);
}

void FillLogprob(uint32_t id, std::mt19937_64& random, v1::TokenLogprob* to) {
  to->set_token_id(id);
  to->set_logprob(-static_cast<float>(random() % 1000) / 64);
  to->set_rank(1 + random() % 9);
}

void FillPosition(uint32_t id, uint32_t top, std::mt19937_64& random,
                  v1::PositionLogprobs* to) {
  FillLogprob(id, random, to->mutable_token());
  for (uint32_t i = 0; i < top; ++i) {
    FillLogprob(RandomToken(random), random, to->add_top());
  }
}

// All of a choice, as a function of the prompt and the seed alone.
std::vector<v1::TokenDelta> MakeTokens(const v1::WorkerGenerateRequest& request,
                                       uint32_t index,
                                       v1::WorkerGenerateResponse* finish) {
  std::mt19937_64 random(request.sampling().seed() * 31 + index +
                         request.prompt_token_ids_size() * 7919);
  std::vector<uint32_t> ids;
  for (size_t parts = 1 + random() % 12; parts > 0; --parts) {
    if (random() % 3 != 0) {
      ids.push_back(RandomToken(random));
      continue;
    }
    for (const char byte : kParts[random() % std::size(kParts)]) {
      ids.push_back(static_cast<uint8_t>(byte));
    }
  }
  std::vector<v1::TokenDelta> tokens(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    v1::TokenDelta& delta = tokens[i];
    delta.set_index(index);
    delta.add_token_ids(ids[i]);
    if (request.sampling().has_logprobs()) {
      FillPosition(delta.token_ids(0), request.sampling().logprobs(), random,
                   delta.add_logprobs());
    }
  }
  v1::TokenFinish& end = *finish->mutable_finish();
  end.set_index(index);
  end.set_reason(random() % 2 == 0 ? v1::STOP : v1::LENGTH);
  if (end.reason() == v1::STOP) {
    end.set_stop_token_id(random() % 2 == 0 ? 257 : 'q');
  }
  return tokens;
}

// The answer, in messages that differ from call to call as timing would have
// it.
FakeAnswer Answer(const v1::WorkerGenerateRequest& request, uint64_t salt) {
  std::mt19937_64 timing(salt);
  FakeAnswer answer;
  answer.messages.push_back(AcceptedMessage(request));
  if (request.sampling().has_prompt_logprobs()) {
    std::mt19937_64 random(request.sampling().seed());
    v1::WorkerGenerateResponse message;
    for (int i = 1; i < request.prompt_token_ids_size(); ++i) {
      FillPosition(request.prompt_token_ids(i),
                   request.sampling().prompt_logprobs(), random,
                   message.mutable_delta()->add_prompt_logprobs());
      if (timing() % 3 == 0) {
        answer.messages.push_back(std::exchange(message, {}));
      }
    }
    if (message.has_delta()) answer.messages.push_back(message);
  }
  const uint32_t n = std::max<uint32_t>(1, request.sampling().n());
  std::vector<std::vector<v1::WorkerGenerateResponse>> queues(n);
  for (uint32_t index = 0; index < n; ++index) {
    v1::WorkerGenerateResponse finish, message;
    for (const v1::TokenDelta& token : MakeTokens(request, index, &finish)) {
      if (message.has_delta() && timing() % 2 == 0) {
        queues[index].push_back(std::exchange(message, {}));
      }
      message.mutable_delta()->MergeFrom(token);
    }
    queues[index].push_back(message);
    queues[index].push_back(finish);
  }
  std::vector<size_t> next(n, 0);
  for (size_t left = n; left > 0;) {
    const size_t index = timing() % n;
    if (next[index] == queues[index].size()) continue;
    answer.messages.push_back(queues[index][next[index]++]);
    if (next[index] == queues[index].size()) --left;
  }
  answer.messages.push_back(SummaryMessage());
  return answer;
}

json RandomRequest(std::mt19937_64& random, bool is_chat) {
  const auto chance = [&](int in) { return random() % in == 0; };
  json request = {{"seed", random() % 1000}, {"n", 1 + random() % 3}};
  const std::string text(1 + random() % 20, 'p');
  if (is_chat) {
    request["messages"] = json::array({{{"role", "user"}, {"content", text}}});
    if (chance(2)) {
      request["logprobs"] = true;
      request["top_logprobs"] = random() % 3;
    }
    if (chance(2)) {
      request["tools"] =
          json::array({{{"type", "function"}, {"function", {{"name", "f"}}}}});
    }
    if (chance(3)) request["parallel_tool_calls"] = false;
    if (chance(4)) request["include_reasoning"] = false;
  } else {
    request["prompt"] = text;
    if (chance(3)) request["prompt"] = {text, "another"};
    if (chance(2)) request["logprobs"] = random() % 3;
    if (chance(3)) request["echo"] = true;
    if (request.contains("echo") && chance(3)) request["max_tokens"] = 0;
  }
  if (chance(2))
    request["stop"] = chance(2) ? json(".") : json({"a.", "\n", "é"});
  if (chance(3)) request["include_stop_str_in_output"] = true;
  if (chance(3)) request["skip_special_tokens"] = false;
  if (chance(3)) request["stop_token_ids"] = {'q'};
  if (chance(3)) request["return_token_ids"] = true;
  if (chance(4)) request["return_tokens_as_token_ids"] = true;
  return request;
}

// Ids, and what says that it is a stream.
void DropWhatDiffers(json* answer) {
  for (const char* key : {"id", "created", "object"}) answer->erase(key);
  for (json& choice : (*answer)["choices"]) {
    if (!choice.contains("message")) continue;
    if (!choice["message"].contains("tool_calls")) continue;
    for (json& call : choice["message"]["tool_calls"]) {
      EXPECT_FALSE(call["id"].get<std::string>().empty());
      call.erase("id");
    }
  }
}

class SameAnswerTest : public GatewayTest {
 protected:
  SameAnswerTest() {
    const char* given = std::getenv("LOCKSTEP_TEST_SEED");
    seed_ = given == nullptr ? std::random_device{}()
                             : std::strtoull(given, nullptr, 10);
    std::printf("LOCKSTEP_TEST_SEED=%llu\n",
                static_cast<unsigned long long>(seed_));
    worker_.set_script([this](const auto& request) {
      return Answer(request, salt_.fetch_add(1) + seed_);
    });
  }

  json Whole(const std::string& path, const json& request) {
    auto answer = PostJson(http_port(), path, request);
    EXPECT_EQ(answer.status, 200) << answer.json;
    DropWhatDiffers(&answer.json);
    return answer.json;
  }

  json Streamed(const std::string& path, json request) {
    request["stream"] = true;
    request["stream_options"] = {{"include_usage", true}};
    const auto answer = PostJson(http_port(), path, request);
    EXPECT_TRUE(answer.done) << answer.json;
    json whole = Accumulate(answer.events);
    DropWhatDiffers(&whole);
    return whole;
  }

  uint64_t seed_ = 0;
  std::atomic<uint64_t> salt_{0};
};

v1::GenerateRequest ToGrpc(const json& request) {
  v1::GenerateRequest message;
  if (request.contains("messages")) {
    auto* chat = message.mutable_chat()->add_messages();
    chat->set_role("user");
    chat->set_content(request["messages"][0]["content"].get<std::string>());
  } else {
    message.set_text(request["prompt"].get<std::string>());
    message.mutable_sampling()->set_max_tokens(16);
  }
  if (request.contains("tools")) {
    message.mutable_chat()->add_tools()->set_name("f");
  }
  message.set_parallel_tool_calls(request.value("parallel_tool_calls", true));
  message.set_include_reasoning(request.value("include_reasoning", true));
  v1::SamplingParams& sampling = *message.mutable_sampling();
  sampling.set_seed(request["seed"].get<uint64_t>());
  sampling.set_n(request["n"].get<uint32_t>());
  const json stop = request.value("stop", json::array());
  for (const json& each : stop.is_string() ? json::array({stop}) : stop) {
    message.add_stop(each.get<std::string>());
  }
  if (request.value("include_stop_str_in_output", false)) {
    message.set_include_stop_str_in_output(true);
  }
  message.set_skip_special_tokens(request.value("skip_special_tokens", true));
  if (request.contains("stop_token_ids")) sampling.add_stop_token_ids('q');
  if (request.contains("messages")) {
    if (request.contains("logprobs")) {
      sampling.set_logprobs(request["top_logprobs"].get<uint32_t>());
    }
  } else if (request.contains("logprobs")) {
    sampling.set_logprobs(request["logprobs"].get<uint32_t>());
  }
  return message;
}

// The log-probabilities of an answer's tokens, whatever the schema.
std::vector<float> Numbers(const json& choice) {
  std::vector<float> numbers;
  const json& logprobs = choice["logprobs"];
  if (logprobs.is_null()) return numbers;
  if (logprobs.contains("content")) {
    for (const json& token : logprobs["content"]) {
      numbers.push_back(token["logprob"].get<float>());
    }
  } else {
    for (const json& number : logprobs["token_logprobs"]) {
      numbers.push_back(number.get<float>());
    }
  }
  return numbers;
}

// A choice of a chat as `message` says it, from what gRPC does.
json MessageOf(const Outcome& outcome, uint32_t index) {
  json calls = json::array();
  std::string reasoning;
  for (const auto& message : outcome.messages) {
    if (!message.has_delta() || message.delta().index() != index) continue;
    reasoning += message.delta().reasoning();
    for (const v1::ToolCallDelta& part : message.delta().tool_calls()) {
      EXPECT_EQ(part.id().empty(), part.index() < calls.size());
      if (part.index() == calls.size()) {
        calls.push_back(
            {{"type", "function"},
             {"function", {{"name", part.name()}, {"arguments", ""}}}});
      }
      json& arguments = calls[part.index()]["function"]["arguments"];
      arguments = arguments.get<std::string>() + part.arguments();
    }
  }
  json said = {{"role", "assistant"},
               {"content", outcome.Text(index)},
               {"refusal", nullptr}};
  if (!reasoning.empty()) {
    said["reasoning"] = said["reasoning_content"] = reasoning;
  }
  if (!calls.empty()) said["tool_calls"] = calls;
  if (said["content"] == "" && said.size() > 3) said["content"] = nullptr;
  return said;
}

std::string ReasonOf(const v1::TextFinish& finish) {
  if (finish.awaits_tools()) return "tool_calls";
  return finish.reason() == v1::STOP ? "stop" : "length";
}

void ExpectSame(const json& whole, const Outcome& outcome) {
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  for (const json& choice : whole["choices"]) {
    const uint32_t index = choice["index"].get<uint32_t>();
    if (choice.contains("text")) {
      EXPECT_EQ(choice["text"], outcome.Text(index));
    } else {
      EXPECT_EQ(choice["message"], MessageOf(outcome, index));
    }
    std::vector<uint32_t> ids;
    std::vector<float> numbers;
    v1::TextFinish finish;
    for (const auto& message : outcome.messages) {
      if (message.has_delta() && message.delta().index() == index) {
        ids.insert(ids.end(), message.delta().token_ids().begin(),
                   message.delta().token_ids().end());
        for (const auto& position : message.delta().logprobs()) {
          numbers.push_back(position.token().logprob());
        }
      }
      if (message.has_finish() && message.finish().index() == index) {
        finish = message.finish();
      }
    }
    if (choice.contains("token_ids")) {
      EXPECT_EQ(choice["token_ids"], json(ids));
    }
    EXPECT_EQ(Numbers(choice), numbers);
    EXPECT_EQ(choice["finish_reason"], ReasonOf(finish));
    if (finish.has_stop_string()) {
      EXPECT_EQ(choice["stop_reason"], finish.stop_string());
    }
  }
  const v1::GenerateSummary& summary = outcome.messages.back().summary();
  const v1::Usage& usage = summary.usage();
  EXPECT_EQ(whole["usage"]["completion_tokens_details"]["reasoning_tokens"],
            summary.reasoning_tokens());
  EXPECT_EQ(whole["usage"]["completion_tokens"], usage.completion_tokens());
  EXPECT_EQ(whole["usage"]["prompt_tokens_details"]["cached_tokens"],
            usage.cached_tokens());
  EXPECT_EQ(whole["usage"]["prompt_tokens"],
            outcome.messages.front().accepted().prompt_tokens());
}

TEST_F(SameAnswerTest, StreamedWholeAndOverGrpc) {
  std::mt19937_64 random(seed_);
  for (int i = 0; i < kRequests && !HasFailure(); ++i) {
    const bool is_chat = random() % 2 == 0;
    const json request = RandomRequest(random, is_chat);
    SCOPED_TRACE(absl::StrCat("request ", i, ": ", request.dump()));
    const std::string path =
        is_chat ? "/v1/chat/completions" : "/v1/completions";
    const json whole = Whole(path, request);
    EXPECT_EQ(Streamed(path, request), whole);
    // gRPC has one prompt a call, and no echo.
    if (request.contains("echo") ||
        request.value("prompt", json()).is_array()) {
      continue;
    }
    ExpectSame(whole, Generate(ToGrpc(request)));
  }
}

}  // namespace
}  // namespace lockstep
