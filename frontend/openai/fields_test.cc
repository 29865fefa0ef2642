#include "frontend/openai/fields.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "frontend/generation/error_detail.h"
#include "frontend/openai/request.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

constexpr Endpoint kEndpoints[] = {kChat, kCompletions, kTokenize, kDetokenize};

// What any of the four parsers makes of a request.
struct Parsed {
  absl::Status status;
  GenerateSpec spec;
  AnswerStyle style;
  TokenizeRequest tokenize;
  DetokenizeSpec detokenize;
  uint64_t unknown = 0;  // fields
};

json Least(Endpoint endpoint) {
  const json messages = json::array({{{"role", "user"}, {"content", "hi"}}});
  switch (endpoint) {
    case kChat:
      return {{"messages", messages}};
    case kDetokenize:
      return {{"tokens", {1}}};
    default:
      return {{"prompt", "hi"}};
  }
}

Parsed Parse(Endpoint endpoint, const json& request) {
  UnknownFields unknown;
  const RequestContext context = {{"tiny", 1000, 300, "0123456789abcdef0123"},
                                  "req-1",
                                  /*has_request_id=*/false,
                                  /*now_s=*/0,
                                  &unknown};
  Parsed parsed;
  const std::string body = request.dump();
  if (endpoint == kTokenize) {
    auto result = ParseTokenizeRequest(body, context);
    parsed.status = result.status();
    if (result.ok()) parsed.tokenize = *std::move(result);
  } else if (endpoint == kDetokenize) {
    auto result = ParseDetokenizeRequest(body, context);
    parsed.status = result.status();
    if (result.ok()) parsed.detokenize = *std::move(result);
  } else {
    auto result = endpoint == kChat ? ParseChatRequest(body, context)
                                    : ParseCompletionRequest(body, context);
    parsed.status = result.status();
    if (result.ok()) {
      parsed.spec = std::move(result->specs[0]);
      parsed.style = std::move(result->style);
    }
  }
  for (const auto& [name, count] : unknown.counts()) parsed.unknown += count;
  return parsed;
}

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
  const json none = json::object();
  const json streamed = {{"stream", true}};
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
      {kTokenize,
       "messages",
       Least(kChat)["messages"],
       {{"prompt", nullptr}},
       [](const Parsed& p) {
         EXPECT_EQ(
             std::get<ChatPrompt>(p.tokenize.prompt.prompt).messages[0].content,
             "hi");
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
      {kTokenize,
       "add_generation_prompt",
       false,
       {{"messages", Least(kChat)["messages"]}, {"prompt", nullptr}},
       [](const Parsed& p) {
         EXPECT_FALSE(std::get<ChatPrompt>(p.tokenize.prompt.prompt)
                          .add_generation_prompt);
       }},
      {kTokenize,
       "continue_final_message",
       true,
       {{"messages", Least(kChat)["messages"]}, {"prompt", nullptr}},
       [](const Parsed& p) {
         EXPECT_TRUE(std::get<ChatPrompt>(p.tokenize.prompt.prompt)
                         .continue_final_message);
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
       {{"messages", Least(kChat)["messages"]}, {"prompt", nullptr}},
       [](const Parsed& p) {
         EXPECT_EQ(
             std::get<ChatPrompt>(p.tokenize.prompt.prompt).template_arguments,
             R"({"thinking":false})");
       }},
      {kChat, "documents", json::array({"d"}), none,
       [=](const Parsed& p) {
         EXPECT_EQ(chat_of(p).template_arguments, R"({"documents":["d"]})");
       }},
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
  };
}

TEST(Fields, EachThatIsHonouredIs) {
  std::set<std::pair<std::string, unsigned>> seen;
  for (const Honoured& c : HonouredFields()) {
    for (const Endpoint endpoint : kEndpoints) {
      if ((c.endpoints & endpoint) == 0) continue;
      SCOPED_TRACE(absl::StrCat(c.name, " of ", endpoint));
      json request = Least(endpoint);
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

TEST(Fields, EachThatIsRefusedIsUnlessItAsksForNothing) {
  for (const Field& field : Fields()) {
    if (field.treatment != Treatment::kRefused) continue;
    for (const Endpoint endpoint : kEndpoints) {
      if ((field.endpoints & endpoint) == 0) continue;
      SCOPED_TRACE(absl::StrCat(field.name, " of ", endpoint));
      json request = Least(endpoint);
      request[field.name] = "anything";
      const absl::Status status = Parse(endpoint, request).status;
      EXPECT_EQ(
          status.message(),
          absl::StrCat(field.name, " is not supported: ", field.note, "."));
      EXPECT_EQ(FieldOf(status), field.name);
      EXPECT_EQ(ReasonOf(status), kUnsupportedParameter);
      request[field.name] = nullptr;
      EXPECT_TRUE(Parse(endpoint, request).status.ok());
      if (*field.neutral == '\0') continue;
      request[field.name] = json::parse(field.neutral);
      EXPECT_TRUE(Parse(endpoint, request).status.ok());
    }
  }
}

TEST(Fields, EachWithoutEffectHasNone) {
  for (const Field& field : Fields()) {
    if (field.treatment != Treatment::kWithoutEffect) continue;
    for (const Endpoint endpoint : {kChat, kCompletions}) {
      if ((field.endpoints & endpoint) == 0) continue;
      json request = Least(endpoint);
      const Parsed before = Parse(endpoint, request);
      request[field.name] = true;
      const Parsed after = Parse(endpoint, request);
      EXPECT_TRUE(after.status.ok()) << field.name;
      EXPECT_EQ(after.unknown, 0);
      EXPECT_EQ(after.spec.sampling.SerializeAsString(),
                before.spec.sampling.SerializeAsString());
    }
  }
}

TEST(Fields, OneThatNobodyKnowsIsAcceptedAndCounted) {
  for (const Endpoint endpoint : kEndpoints) {
    json request = Least(endpoint);
    request["invented"] = {{"by", "a client"}};
    const Parsed parsed = Parse(endpoint, request);
    EXPECT_TRUE(parsed.status.ok()) << parsed.status;
    EXPECT_EQ(parsed.unknown, 1);
  }
}

TEST(Fields, ThePageShowsTheTable) {
  std::ifstream file("docs/openai.md");
  const std::string page((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  for (const Field& field : Fields()) {
    EXPECT_THAT(page, ::testing::HasSubstr(absl::StrCat("`", field.name, "`")));
    EXPECT_THAT(page, ::testing::HasSubstr(field.note)) << field.name;
  }
}

}  // namespace
}  // namespace lockstep::openai
