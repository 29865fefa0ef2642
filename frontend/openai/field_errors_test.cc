// What is wrong with a request is said of the very element at fault.

#include <gtest/gtest.h>

#include <string>

#include "frontend/generation/error_detail.h"
#include "frontend/openai/fields.h"
#include "tests/testing/http/parsed_request.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;

struct Case {
  Endpoint endpoint;
  const char* request;  // merged into the least request
  const char* param;
  const char* error;
};

constexpr Case kCases[] = {
    {kChat, R"({"messages": [{"role": "user", "content": "a"}, 7]})",
     "messages[1]", "messages[1] is 7; it must be an object."},
    {kChat, R"({"messages": [{"role": "user", "content": 7}]})",
     "messages[0].content",
     "messages[0].content is 7; it must be a string or a list of parts."},
    {kChat,
     R"({"messages": [{"role": "user", "content": ["a", {"type": "image"}]}]})",
     "messages[0].content[1]",
     "messages[0].content[1] of type \"image\" is not supported: parts are of "
     "type text."},
    {kChat, R"({"stop": ["a", "b", 3]})", "stop[2]",
     "stop[2] is 3; it must be a string."},
    {kChat, R"({"stop": {}})", "stop",
     "stop is an object; it must be a string or a list of strings."},
    {kChat, R"({"stop_token_ids": [1, -1]})", "stop_token_ids[1]",
     "stop_token_ids[1] is -1; it must be a token id."},
    {kCompletions, R"({"prompt": [1, 2, "c"]})", "prompt[2]",
     "prompt[2] is \"c\"; it must be a token id."},
    {kCompletions, R"({"prompt": ["a", [1, 1.5]]})", "prompt[1][1]",
     "prompt[1][1] is 1.5; it must be a token id."},
    {kCompletions, R"({"prompt": ["a", true]})", "prompt[1]",
     "prompt[1] is true; it must be a string or a list of token ids."},
    {kDetokenize, R"({"tokens": [1, 4294967296]})", "tokens[1]",
     "tokens[1] is 4294967296; it must be a token id."},
    {kChat, R"({"logit_bias": {"1": 5, "01": 5}})", "logit_bias",
     "logit_bias has the key \"01\"; keys must be token ids, such as \"17\"."},
    {kChat, R"({"logit_bias": {" 1": 5}})", "logit_bias",
     "logit_bias has the key \" 1\"; keys must be token ids, such as \"17\"."},
    {kChat, R"({"logit_bias": {"1": "a"}})", "logit_bias.1",
     "logit_bias.1 is \"a\"; it must be a number."},
    {kChat, R"({"logit_bias": {"1": null}})", "logit_bias.1",
     "logit_bias.1 is null; it must be a number."},
    {kChat, R"({"allowed_token_ids": []})", "allowed_token_ids",
     "allowed_token_ids is a list; it must be a list of at least one token "
     "id."},
    {kChat, R"({"allowed_token_ids": [1, "2"]})", "allowed_token_ids[1]",
     "allowed_token_ids[1] is \"2\"; it must be a token id."},
    {kCompletions, R"({"bad_words": ["a", ""]})", "bad_words",
     "bad_words[1] is 0 bytes long; it must be 1 to 128."},
    {kCompletions, R"({"bad_words": [1]})", "bad_words[0]",
     "bad_words[0] is 1; it must be a string."},
    {kChat, R"({"truncate_prompt_tokens": 0})", "truncate_prompt_tokens",
     "truncate_prompt_tokens is 0; it must be from 1 to 999, as the context of "
     "tiny is 1000 tokens and the answer needs one of them."},
    {kCompletions, R"({"truncate_prompt_tokens": 1000})",
     "truncate_prompt_tokens",
     "truncate_prompt_tokens is 1000; it must be from 1 to 999, as the context "
     "of tiny is 1000 tokens and the answer needs one of them."},
    {kChat, R"({"truncate_prompt_tokens": -2})", "truncate_prompt_tokens",
     "truncate_prompt_tokens is -2; it must be an integer from -1 to "
     "4294967295."},
    {kChat, R"({"n": 129})", "n",
     "n is 129; it must be an integer from 1 to 128."},
    {kChat, R"({"n": 4294967295})", "n",
     "n is 4294967295; it must be an integer from 1 to 128."},
    {kChat, R"({"temperature": 1e300})", "temperature",
     "temperature is 1e+300; it must be a number that 32 bits can hold."},
};

TEST(FieldErrors, NameTheElementItsValueAndWhatItMustBe) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.request);
    json request = LeastRequest(c.endpoint);
    request.update(json::parse(c.request));
    const absl::Status status = ParseForTest(c.endpoint, request.dump()).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), c.error);
    EXPECT_EQ(FieldOf(status), c.param);
  }
}

// Each prompt of a request has a copy of them.
TEST(FieldErrors, ListsAreBoundedBeforeTheyAreCopied) {
  json biases = json::object();
  for (int id = 0; id < 1025; ++id) biases[std::to_string(id)] = 1;
  const struct {
    const char* name;
    json value;
    const char* error;
  } kRows[] = {
      {"allowed_token_ids", std::vector<int>(4097, 1),
       "allowed_token_ids is a list; it must be a list of at most 4096 token "
       "ids."},
      {"stop_token_ids", std::vector<int>(65, 1),
       "stop_token_ids is a list; it must be a list of at most 64 token ids."},
      {"logit_bias", biases,
       "logit_bias is an object; it must be an object of at most 1024 token "
       "ids."},
  };
  for (const auto& row : kRows) {
    json request = LeastRequest(kChat);
    request[row.name] = row.value;
    const absl::Status status = ParseForTest(kChat, request.dump()).status;
    EXPECT_EQ(status.message(), row.error);
    EXPECT_EQ(FieldOf(status), row.name);
  }
}

TEST(FieldErrors, NoValueIsRepeatedWhole) {
  const std::string digits(1 << 20, '9'), text(1 << 20, 'x');
  for (const std::string& value :
       {digits, "\"" + text + "\"", "[\"" + text + "\"]",
        "{\"" + text + "\": \"" + text + "\"}"}) {
    for (const char* name : {"n", "temperature", "seed", "stop_token_ids",
                             "logit_bias", "stream", "messages", "model"}) {
      json request = LeastRequest(kChat);
      request.erase(name);
      const std::string body =
          "{\"" + std::string(name) + "\": " + value + ", " +
          (request.empty() ? "\"x\": 1}" : request.dump().substr(1));
      const absl::Status status = ParseForTest(kChat, body).status;
      EXPECT_FALSE(status.ok()) << name;
      EXPECT_LT(status.message().size(), 300) << name;
    }
  }
}

}  // namespace
}  // namespace lockstep::openai
