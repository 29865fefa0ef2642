// For random requests: a stream adds up to the whole answer, and both are what
// gRPC says.

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/gateway_test_fixture.h"
#include "tests/testing/http/openai_client.h"
#include "tests/testing/http/random_answers.h"

namespace lockstep {
namespace {

using nlohmann::json;
using testing::Accumulate;
using testing::GatewayTest;
using testing::Outcome;
using testing::PostJson;
using testing::RandomAnswer;
using testing::RandomRequest;

constexpr int kRequests = 500;

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
  SameAnswerTest()
      : GatewayTest([this](GatewayOptions* /*options*/) {
          worker_.model_info().set_fingerprint("0123456789abcdef, and more");
        }) {
    const char* given = std::getenv("LOCKSTEP_TEST_SEED");
    seed_ = given == nullptr ? std::random_device{}()
                             : std::strtoull(given, nullptr, 10);
    std::printf("LOCKSTEP_TEST_SEED=%llu\n",
                static_cast<unsigned long long>(seed_));
    worker_.set_script([this](const auto& request) {
      return RandomAnswer(request, salt_.fetch_add(1) + seed_);
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

// gRPC has one prompt a call.
json PromptsOf(const json& request) {
  if (request.contains("messages")) return json::array({request["messages"]});
  const json& prompt = request["prompt"];
  const bool is_list = prompt.is_array() && !prompt[0].is_number();
  return is_list ? prompt : json::array({prompt});
}

v1::GenerateRequest ToGrpc(const json& request, const json& prompt) {
  v1::GenerateRequest message;
  if (request.contains("messages")) {
    auto* chat = message.mutable_chat()->add_messages();
    chat->set_role("user");
    chat->set_content(prompt[0]["content"].get<std::string>());
  } else if (prompt.is_string()) {
    message.set_text(prompt.get<std::string>());
  } else {
    for (const json& id : prompt) {
      message.mutable_token_ids()->add_ids(id.get<uint32_t>());
    }
  }
  if (!request.contains("messages")) {
    message.mutable_sampling()->set_max_tokens(16);
  }
  for (const json& tool : request.value("tools", json::array())) {
    v1::Tool& added = *message.mutable_chat()->add_tools();
    const json& function = tool["function"];
    added.set_name(function["name"].get<std::string>());
    if (!function.contains("parameters")) continue;
    added.set_parameters(function["parameters"].dump());
  }
  if (request.contains("add_special_tokens")) {
    message.set_add_special_tokens(request["add_special_tokens"].get<bool>());
  }
  message.set_return_prompt(true);
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

// The log-probabilities of an answer's tokens, and of a chat's those of others
// beside each, whatever the schema; before each of a chat its bytes.
std::vector<float> Numbers(const json& choice) {
  std::vector<float> numbers;
  const auto add = [&numbers](const json& token) {
    for (const json& byte : token["bytes"]) {
      numbers.push_back(byte.get<float>());
    }
    numbers.push_back(token["logprob"].get<float>());
  };
  const json& logprobs = choice["logprobs"];
  if (logprobs.is_null()) return numbers;
  if (logprobs.contains("content")) {
    for (const json& token : logprobs["content"]) {
      add(token);
      for (const json& other : token["top_logprobs"]) add(other);
    }
  } else {
    for (const json& number : logprobs["token_logprobs"]) {
      // Of an echo's first token there is none.
      numbers.push_back(number.is_null() ? 1 : number.get<float>());
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

// What gRPC says of one choice.
struct Choice {
  std::vector<uint32_t> ids;
  std::vector<float> numbers;  // as Numbers has them
  v1::TextFinish finish;
};

Choice ChoiceOf(const Outcome& outcome, uint32_t index, bool is_chat) {
  Choice choice;
  const auto add = [&choice, is_chat](const v1::TokenLogprob& token) {
    const std::string& bytes = token.has_bytes() ? token.bytes() : token.text();
    for (const char byte : is_chat ? bytes : std::string()) {
      choice.numbers.push_back(static_cast<uint8_t>(byte));
    }
    choice.numbers.push_back(token.logprob());
  };
  for (const auto& message : outcome.messages) {
    if (message.has_finish() && message.finish().index() == index) {
      choice.finish = message.finish();
    }
    if (!message.has_delta() || message.delta().index() != index) continue;
    const v1::TextDelta& delta = message.delta();
    choice.ids.insert(choice.ids.end(), delta.token_ids().begin(),
                      delta.token_ids().end());
    for (const auto& position : delta.logprobs()) {
      add(position.token());
      if (!is_chat) continue;
      for (const v1::TokenLogprob& other : position.top()) add(other);
    }
  }
  return choice;
}

json StopReasonOf(const v1::TextFinish& finish, const json& request) {
  if (finish.has_stop_string()) return finish.stop_string();
  const bool asked = request.contains("stop_token_ids") &&
                     finish.has_stop_token_id() &&
                     request["stop_token_ids"][0] == finish.stop_token_id();
  return asked ? json(finish.stop_token_id()) : json();
}

// An echo comes before what was generated.
template <typename List>
List Tail(const List& list, size_t size) {
  EXPECT_GE(list.size(), size);
  return {list.end() - std::min(size, list.size()), list.end()};
}

void ExpectSameChoice(const json& request, const json& choice,
                      const Outcome& outcome, uint32_t index) {
  const bool is_chat = request.contains("messages");
  const bool has_echo = request.contains("echo");
  const Choice said = ChoiceOf(outcome, index, is_chat);
  std::vector<float> numbers = Numbers(choice);
  if (has_echo) numbers = Tail(numbers, said.numbers.size());
  EXPECT_EQ(numbers, said.numbers);
  if (is_chat) {
    EXPECT_EQ(choice["message"], MessageOf(outcome, index));
  } else {
    const std::string text = choice["text"].get<std::string>();
    EXPECT_EQ(has_echo ? Tail(text, outcome.Text(index).size()) : text,
              outcome.Text(index));
  }
  if (choice.contains("token_ids")) {
    EXPECT_EQ(choice["token_ids"], json(said.ids));
  }
  EXPECT_EQ(choice["finish_reason"], ReasonOf(said.finish));
  EXPECT_EQ(choice["stop_reason"], StopReasonOf(said.finish, request));
}

// Of a prompt, what is said before its choices.
void ExpectSamePrompt(const json& request, const json& whole, size_t prompt,
                      const v1::GenerateAccepted& accepted) {
  EXPECT_EQ(whole["system_fingerprint"], accepted.system_fingerprint());
  if (!request.contains("return_token_ids")) return;
  const uint32_t first_choice = prompt * request["n"].get<uint32_t>();
  // vLLM has it in the answer of a chat, and in the choices of a completion.
  const json& at =
      request.contains("messages") ? whole : whole["choices"][first_choice];
  EXPECT_EQ(at["prompt_token_ids"],
            json(std::vector<uint32_t>(accepted.prompt_token_ids().begin(),
                                       accepted.prompt_token_ids().end())));
}

// One outcome for each prompt.
void ExpectSame(const json& request, const json& whole,
                const std::vector<Outcome>& outcomes) {
  const uint32_t n = request["n"].get<uint32_t>();
  uint32_t prompt_tokens = 0, tokens = 0, cached = 0, reasoning = 0;
  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    const v1::GenerateSummary& summary = outcome.messages.back().summary();
    prompt_tokens += outcome.messages.front().accepted().prompt_tokens();
    tokens += summary.usage().completion_tokens();
    cached += summary.usage().cached_tokens();
    reasoning += summary.reasoning_tokens();
  }
  ASSERT_EQ(whole["choices"].size(), n * outcomes.size());
  for (size_t i = 0; i < outcomes.size(); ++i) {
    ExpectSamePrompt(request, whole, i,
                     outcomes[i].messages.front().accepted());
  }
  for (const json& choice : whole["choices"]) {
    const uint32_t index = choice["index"].get<uint32_t>();
    ExpectSameChoice(request, choice, outcomes[index / n], index % n);
  }
  EXPECT_EQ(
      whole["usage"],
      json({{"prompt_tokens", prompt_tokens},
            {"completion_tokens", tokens},
            {"total_tokens", prompt_tokens + tokens},
            {"prompt_tokens_details", {{"cached_tokens", cached}}},
            {"completion_tokens_details", {{"reasoning_tokens", reasoning}}}}));
}

// Half a character has its bytes, too.
TEST_F(SameAnswerTest, TokensAreTheSameTexts) {
  v1::TokenizeRequest request;
  request.set_text("né");
  request.set_return_token_strs(true);
  grpc::ClientContext context;
  v1::TokenizeResponse response;
  ASSERT_TRUE(stub_->Tokenize(&context, request, &response).ok());
  const json said = PostJson(http_port(), "/tokenize",
                             {{"prompt", "né"}, {"return_token_strs", true}})
                        .json;
  EXPECT_EQ(said["tokens"],
            json(std::vector<uint32_t>(response.token_ids().begin(),
                                       response.token_ids().end())));
  EXPECT_EQ(said["token_strs"],
            json(std::vector<std::string>(response.token_strs().begin(),
                                          response.token_strs().end())));
  EXPECT_EQ(said["token_strs"].size(), 4);  // <bos>, n, and two halves
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
    if (request.contains("max_tokens")) continue;  // gRPC has no bare echo
    std::vector<Outcome> outcomes;
    for (const json& prompt : PromptsOf(request)) {
      outcomes.push_back(Generate(ToGrpc(request, prompt)));
    }
    ExpectSame(request, whole, outcomes);
  }
}

}  // namespace
}  // namespace lockstep
