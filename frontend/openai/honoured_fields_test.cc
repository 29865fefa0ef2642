// Each field that the table calls honoured is; those of embeddings are in
// embeddings_fields_test.cc.

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/generation/error_detail.h"
#include "frontend/openai/fields.h"
#include "tests/testing/http/parsed_request.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using Parsed = ParsedForTest;

Parsed Parse(Endpoint endpoint, const json& request) {
  return ParseForTest(endpoint, request.dump());
}

constexpr Endpoint kEndpoints[] = {kChat, kCompletions, kTokenize, kDetokenize};

// A value, what else the request needs, and what comes of it.
struct Honoured {
  unsigned endpoints;
  const char* name;
  json value;
  json with;
  std::function<void(const Parsed&)> check;
};

std::vector<Honoured> HonouredFields() {
  const auto chat_of = [](const Parsed& p) {
    return std::get<ChatPrompt>(p.spec.prompt.prompt);
  };
  const auto tokenized_chat_of = [](const Parsed& p) {
    return std::get<ChatPrompt>(p.tokenize.prompt.prompt);
  };
  const json none = json::object();
  const json tools =
      json::array({{{"type", "function"}, {"function", {{"name", "f"}}}}});
  const json chat = {{"messages", LeastRequest(kChat)["messages"]},
                     {"prompt", nullptr}};
  json chat_with_tools = chat;
  chat_with_tools["tools"] = tools;
  const json functions = {{"functions", json::array({tools[0]["function"]})}};
  json chat_with_functions = chat;
  chat_with_functions.update(functions);
  const json streamed = {{"stream", true}};
  const json schema = {{"type", "object"}};
  const auto limited = [](const Parsed& p) {
    EXPECT_NE(p.spec.constraint.index(), 0);
  };
  return {
      {kGenerate, "model", "tiny", none,
       [](const Parsed& p) { EXPECT_EQ(p.style.model, "tiny"); }},
      {kTokenize | kDetokenize, "model", "tiny", none, [](const Parsed&) {}},
      {kChat, "messages",
       json::array({{{"role", "system"}, {"content", "be"}, {"name", "ann"}}}),
       none,
       [=](const Parsed& p) {
         EXPECT_EQ(chat_of(p).messages[0].role, "system");
         EXPECT_EQ(chat_of(p).messages[0].content, "be");
         EXPECT_EQ(chat_of(p).messages[0].name, "ann");
       }},
      {kChat, "messages", json::parse(R"([{"role": "assistant", "content": null,
           "reasoning_content": "hm", "tool_calls": [{"id": "c1",
           "type": "function", "function": {"name": "f",
           "arguments": "{\"b\": 1, \"a\": 2}"}}]},
           {"role": "tool", "tool_call_id": "c1", "content": "7"}])"),
       none,
       [=](const Parsed& p) {
         const ChatPrompt prompt = chat_of(p);
         const ChatTurn& said = prompt.messages[0];
         EXPECT_EQ(said.content, "");
         EXPECT_EQ(said.reasoning, "hm");
         ASSERT_EQ(said.tool_calls.size(), 1);
         EXPECT_EQ(said.tool_calls[0].id, "c1");
         EXPECT_EQ(said.tool_calls[0].name, "f");
         EXPECT_EQ(said.tool_calls[0].arguments, R"({"b": 1, "a": 2})");
         EXPECT_EQ(prompt.messages[1].tool_call_id, "c1");
         EXPECT_EQ(prompt.messages[1].content, "7");
       }},
      {kTokenize, "messages", chat["messages"], chat,
       [=](const Parsed& p) {
         EXPECT_EQ(tokenized_chat_of(p).messages[0].content, "hi");
       }},
      {kCompletions,
       "prompt",
       {5, 6},
       none,
       [](const Parsed& p) {
         EXPECT_THAT(std::get<TokenPrompt>(p.spec.prompt.prompt).ids,
                     ElementsAre(5, 6));
       }},
      {kTokenize, "prompt", "you", none,
       [](const Parsed& p) {
         EXPECT_EQ(std::get<TextPrompt>(p.tokenize.prompt.prompt).text, "you");
       }},
      {kDetokenize,
       "tokens",
       {7, 8},
       none,
       [](const Parsed& p) {
         EXPECT_THAT(p.detokenize.ids, ElementsAre(7, 8));
       }},
      {kChat, "add_special_tokens", true, none,
       [](const Parsed& p) { EXPECT_TRUE(p.spec.prompt.add_special_tokens); }},
      {kCompletions, "add_special_tokens", false, none,
       [](const Parsed& p) { EXPECT_FALSE(p.spec.prompt.add_special_tokens); }},
      {kTokenize, "add_special_tokens", false, none,
       [](const Parsed& p) {
         EXPECT_FALSE(p.tokenize.prompt.add_special_tokens);
       }},
      {kChat, "add_generation_prompt", false, none,
       [=](const Parsed& p) {
         EXPECT_FALSE(chat_of(p).add_generation_prompt);
       }},
      {kChat, "continue_final_message", true, none,
       [=](const Parsed& p) {
         EXPECT_TRUE(chat_of(p).continue_final_message);
         EXPECT_FALSE(chat_of(p).add_generation_prompt);
       }},
      {kTokenize, "add_generation_prompt", false, chat,
       [=](const Parsed& p) {
         EXPECT_FALSE(tokenized_chat_of(p).add_generation_prompt);
       }},
      {kTokenize, "continue_final_message", true, chat,
       [=](const Parsed& p) {
         EXPECT_TRUE(tokenized_chat_of(p).continue_final_message);
       }},
      {kChat,
       "chat_template_kwargs",
       {{"thinking", false}},
       none,
       [=](const Parsed& p) {
         EXPECT_EQ(chat_of(p).template_arguments, R"({"thinking":false})");
       }},
      {kTokenize,
       "chat_template_kwargs",
       {{"thinking", false}},
       chat,
       [=](const Parsed& p) {
         EXPECT_EQ(tokenized_chat_of(p).template_arguments,
                   R"({"thinking":false})");
       }},
      {kChat, "documents", json::array({"d"}), none,
       [=](const Parsed& p) {
         EXPECT_EQ(chat_of(p).template_arguments, R"({"documents":["d"]})");
       }},
      {kTokenize, "documents", json::array({"d"}), chat,
       [=](const Parsed& p) {
         EXPECT_EQ(tokenized_chat_of(p).template_arguments,
                   R"({"documents":["d"]})");
       }},
      {kChat, "reasoning_effort", "low", none,
       [=](const Parsed& p) {
         EXPECT_EQ(chat_of(p).template_arguments,
                   R"({"reasoning_effort":"low"})");
       }},
      {kTokenize, "reasoning_effort", "low", chat,
       [=](const Parsed& p) {
         EXPECT_EQ(tokenized_chat_of(p).template_arguments,
                   R"({"reasoning_effort":"low"})");
       }},
      {kChat, "tools", tools, none,
       [=](const Parsed& p) {
         ASSERT_EQ(chat_of(p).tools.size(), 1);
         EXPECT_EQ(chat_of(p).tools[0].name, "f");
         EXPECT_EQ(json::parse(chat_of(p).tools[0].json), tools[0]);
       }},
      {kTokenize, "tools", tools, chat,
       [=](const Parsed& p) {
         EXPECT_EQ(tokenized_chat_of(p).tools.size(), 1);
       }},
      {kChat,
       "tool_choice",
       "none",
       {{"tools", tools}},
       [=](const Parsed& p) { EXPECT_TRUE(chat_of(p).tools.empty()); }},
      {kTokenize, "tool_choice", "auto", chat_with_tools,
       [=](const Parsed& p) {
         EXPECT_EQ(tokenized_chat_of(p).tools.size(), 1);
       }},
      {kChat, "functions", json::array({tools[0]["function"]}), none,
       [=](const Parsed& p) { EXPECT_EQ(chat_of(p).tools.size(), 1); }},
      {kChat,
       "function_call",
       {{"name", "f"}},
       functions,
       [=](const Parsed& p) { EXPECT_EQ(chat_of(p).required_tool, "f"); }},
      {kTokenize, "functions", json::array({tools[0]["function"]}), chat,
       [=](const Parsed& p) {
         EXPECT_EQ(tokenized_chat_of(p).tools.size(), 1);
       }},
      {kTokenize, "function_call", "none", chat_with_functions,
       [=](const Parsed& p) {
         EXPECT_TRUE(tokenized_chat_of(p).tools.empty());
       }},
      {kChat, "parallel_tool_calls", false, none,
       [](const Parsed& p) { EXPECT_FALSE(p.spec.parallel_tool_calls); }},
      {kChat, "include_reasoning", false, none,
       [](const Parsed& p) { EXPECT_FALSE(p.spec.include_reasoning); }},
      {kTokenize, "return_token_strs", true, none,
       [](const Parsed& p) { EXPECT_TRUE(p.tokenize.return_token_strs); }},
      {kCompletions, "echo", true, none,
       [](const Parsed& p) {
         EXPECT_TRUE(p.style.echo);
         EXPECT_TRUE(p.spec.return_prompt);
       }},
      {kGenerate, "temperature", 0.5, none,
       [](const Parsed& p) { EXPECT_EQ(p.spec.sampling.temperature(), 0.5); }},
      {kGenerate, "top_p", 0.5, none,
       [](const Parsed& p) { EXPECT_EQ(p.spec.sampling.top_p(), 0.5); }},
      {kGenerate, "top_k", -1, none,
       [](const Parsed& p) {
         EXPECT_TRUE(p.spec.sampling.has_top_k());
         EXPECT_EQ(p.spec.sampling.top_k(), 0);
       }},
      {kGenerate, "min_p", 0.5, none,
       [](const Parsed& p) { EXPECT_EQ(p.spec.sampling.min_p(), 0.5); }},
      {kGenerate, "frequency_penalty", 1, none,
       [](const Parsed& p) {
         EXPECT_EQ(p.spec.sampling.frequency_penalty(), 1);
       }},
      {kGenerate, "presence_penalty", -1, none,
       [](const Parsed& p) {
         EXPECT_EQ(p.spec.sampling.presence_penalty(), -1);
       }},
      {kGenerate, "repetition_penalty", 2, none,
       [](const Parsed& p) {
         EXPECT_EQ(p.spec.sampling.repetition_penalty(), 2);
       }},
      {kGenerate,
       "logit_bias",
       {{"7", -100}},
       none,
       [](const Parsed& p) {
         EXPECT_EQ(p.spec.sampling.logit_bias().at(7), -100);
       }},
      {kGenerate, "seed", -1, none,
       [](const Parsed& p) {
         EXPECT_EQ(p.spec.sampling.seed(), ~uint64_t{0});
       }},
      {kGenerate, "n", 3, none,
       [](const Parsed& p) {
         EXPECT_EQ(p.spec.sampling.n(), 3);
         EXPECT_EQ(p.style.n, 3);
       }},
      {kGenerate, "max_tokens", 9, none,
       [](const Parsed& p) { EXPECT_EQ(p.spec.sampling.max_tokens(), 9); }},
      {kChat,
       "max_completion_tokens",
       8,
       {{"max_tokens", 9}},
       [](const Parsed& p) { EXPECT_EQ(p.spec.sampling.max_tokens(), 8); }},
      {kGenerate, "min_tokens", 2, none,
       [](const Parsed& p) { EXPECT_EQ(p.spec.sampling.min_tokens(), 2); }},
      {kGenerate, "stop", "x", none,
       [](const Parsed& p) { EXPECT_THAT(p.spec.stop, ElementsAre("x")); }},
      {kGenerate,
       "stop_token_ids",
       {3, 4},
       none,
       [](const Parsed& p) {
         EXPECT_THAT(p.spec.sampling.stop_token_ids(), ElementsAre(3, 4));
         EXPECT_THAT(p.style.stop_token_ids, ElementsAre(3, 4));
       }},
      {kGenerate,
       "allowed_token_ids",
       {5, 3},
       none,
       [](const Parsed& p) {
         EXPECT_THAT(p.spec.sampling.allowed_token_ids(), ElementsAre(5, 3));
       }},
      {kGenerate,
       "bad_words",
       {"a", " b"},
       none,
       [](const Parsed& p) {
         EXPECT_THAT(p.spec.bad_words, ElementsAre("a", " b"));
       }},
      {kGenerate, "truncate_prompt_tokens", 7, none,
       [](const Parsed& p) { EXPECT_EQ(p.spec.truncation, 7); }},
      {kGenerate,
       "truncate_prompt_tokens",
       -1,
       {{"max_tokens", 40}},
       [](const Parsed& p) {
         EXPECT_EQ(p.spec.truncation, p.spec.model.max_context_tokens - 40);
       }},
      {kGenerate, "ignore_eos", true, none,
       [](const Parsed& p) { EXPECT_TRUE(p.spec.sampling.ignore_eos()); }},
      {kGenerate, "include_stop_str_in_output", true, none,
       [](const Parsed& p) { EXPECT_TRUE(p.spec.include_stop_str_in_output); }},
      {kGenerate, "stream", true, none,
       [](const Parsed& p) { EXPECT_TRUE(p.style.stream); }},
      {kGenerate,
       "stream_options",
       {{"include_usage", true}, {"continuous_usage_stats", true}},
       streamed,
       [](const Parsed& p) {
         EXPECT_TRUE(p.style.include_usage);
         EXPECT_TRUE(p.style.continuous_usage_stats);
       }},
      {kChat, "logprobs", true, none,
       [](const Parsed& p) {
         EXPECT_TRUE(p.style.logprobs);
         EXPECT_TRUE(p.spec.sampling.has_logprobs());
       }},
      {kChat,
       "top_logprobs",
       4,
       {{"logprobs", true}},
       [](const Parsed& p) { EXPECT_EQ(p.spec.sampling.logprobs(), 4); }},
      {kCompletions,
       "logprobs",
       4,
       {{"echo", true}},
       [](const Parsed& p) {
         EXPECT_TRUE(p.style.logprobs);
         EXPECT_EQ(p.spec.sampling.logprobs(), 4);
         EXPECT_EQ(p.spec.sampling.prompt_logprobs(), 4);
         EXPECT_FALSE(p.style.prompt_logprobs);
       }},
      {kGenerate, "prompt_logprobs", 2, none,
       [](const Parsed& p) {
         EXPECT_TRUE(p.style.prompt_logprobs);
         EXPECT_EQ(p.spec.sampling.prompt_logprobs(), 2);
       }},
      {kGenerate, "return_token_ids", true, none,
       [](const Parsed& p) {
         EXPECT_TRUE(p.style.return_token_ids);
         EXPECT_TRUE(p.spec.return_prompt);
       }},
      {kGenerate, "return_tokens_as_token_ids", true, none,
       [](const Parsed& p) { EXPECT_TRUE(p.style.tokens_as_token_ids); }},
      {kGenerate, "skip_special_tokens", false, none,
       [](const Parsed& p) { EXPECT_FALSE(p.spec.skip_special_tokens); }},
      {kGenerate, "priority", 7, none,
       [](const Parsed& p) { EXPECT_EQ(p.spec.priority, 7); }},
      {kGenerate, "request_id", "mine", none,
       [](const Parsed& p) { EXPECT_EQ(p.spec.request_id, "mine"); }},
      {kGenerate, "response_format", {{"type", "json_object"}}, none, limited},
      {kGenerate, "structured_outputs", {{"regex", "a+"}}, none, limited},
      {kGenerate, "guided_json", schema, none, limited},
      {kGenerate, "guided_regex", "a+", none, limited},
      {kGenerate, "guided_choice", {"a", "b", "c"}, none, limited},
      {kGenerate, "guided_grammar", "start: \"a\"", none, limited},
      {kGenerate, "guided_json_object", true, none, limited},
      {kGenerate, "json_schema", schema, none, limited},
      {kGenerate, "regex", "a+", none, limited},
      {kGenerate, "ebnf", "root ::= \"a\"", none, limited},
  };
}

TEST(Fields, EachThatIsHonouredIs) {
  std::set<std::pair<std::string, unsigned>> seen;
  for (const Honoured& c : HonouredFields()) {
    for (const Endpoint endpoint : kEndpoints) {
      if ((c.endpoints & endpoint) == 0) continue;
      SCOPED_TRACE(absl::StrCat(c.name, " of ", endpoint));
      json request = LeastRequest(endpoint);
      request.update(c.with);
      request[c.name] = c.value;
      const Parsed parsed = Parse(endpoint, request);
      EXPECT_TRUE(parsed.status.ok()) << parsed.status;
      EXPECT_EQ(parsed.unknown, 0);
      c.check(parsed);
      seen.emplace(c.name, endpoint);

      request[c.name] = json::object({{"of no such", "type"}});
      const absl::Status refused = Parse(endpoint, request).status;
      if (c.value.is_object() && refused.ok()) continue;  // any object will do
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(FieldOf(refused), c.name) << refused;
    }
  }
  for (const Field& field : Fields()) {
    for (const Endpoint endpoint : kEndpoints) {
      if (field.treatment == Treatment::kHonoured &&
          (field.endpoints & endpoint) != 0) {
        EXPECT_EQ(seen.count({field.name, endpoint}), 1)
            << field.name << " of " << endpoint << " has no test";
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::openai
