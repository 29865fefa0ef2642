#include "tests/testing/http/random_answers.h"

#include <absl/strings/string_view.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::testing {
namespace {

using nlohmann::json;

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

}  // namespace

FakeAnswer RandomAnswer(const v1::WorkerGenerateRequest& request,
                        uint64_t salt) {
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
      json function = {{"name", "f"}};
      if (chance(2)) function["parameters"] = {{"type", "object"}};
      request["tools"] =
          json::array({{{"type", "function"}, {"function", function}}});
    }
    if (chance(3)) request["parallel_tool_calls"] = false;
    if (chance(4)) request["include_reasoning"] = false;
  } else {
    request["prompt"] = text;
    if (chance(3)) request["prompt"] = {text, "another"};
    const json ids = json::array({'i', 'd', 's'});
    if (chance(4)) request["prompt"] = ids;
    if (chance(8)) request["prompt"] = json::array({ids, json::array({'s'})});
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
  if (chance(3)) request["add_special_tokens"] = chance(2);
  if (chance(4)) request["return_tokens_as_token_ids"] = true;
  return request;
}

}  // namespace lockstep::testing
