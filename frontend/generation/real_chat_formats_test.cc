// What follows from the chat templates of real models.

#include <absl/strings/match.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "common/status_macros.h"
#include "frontend/generation/chat_format.h"
#include "frontend/generation/prompt_encoder.h"
#include "tests/testing/test_data.h"
#include "tokenizer_service/tokenizer_factory.h"

namespace lockstep {
namespace {

struct Model {
  const char* path;  // under $LOCKSTEP_TEST_DATA
  const char* format;
  bool arguments_are_text;
  const char* call;   // how the template writes an earlier call
  const char* after;  // how an answer to a chat begins
};

constexpr Model kModels[] = {
    {"tokenizers/qwen3", "tool calls hermes, reasoning think", false,
     "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"b\": 1, \"a\": "
     "\"\u00e9\"}}\n</tool_call>",
     "<|im_start|>assistant\n"},
    {"tokenizers/deepseek_v3", "tool calls deepseek, reasoning none", true,
     "f\n```json\n{\"b\": 1, \"a\": \"\u00e9\"}\n```", ""},
};

absl::StatusOr<std::unique_ptr<Tokenizer>> Open(const char* path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string full, testing::TestData(path));
  return OpenTokenizer(full);
}

ChatPrompt CallAndAnswer() {
  ChatPrompt chat = {{{"user", "hi"}}};
  chat.tools = {{"f", R"({"type":"function","function":{"name":"f"}})"}};
  ChatTurn& call = chat.messages.emplace_back();
  call.role = "assistant";
  call.tool_calls = {{"c1", "f", "{\"b\": 1, \"a\": \"\u00e9\"}"}};
  chat.messages.push_back({"tool", "7", "", "", {}, "c1"});
  return chat;
}

TEST(RealChatFormats, FollowFromTheTemplates) {
  for (const Model& model : kModels) {
    SCOPED_TRACE(model.path);
    const auto tokenizer = Open(model.path);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const auto output = ChooseOutputFormat(
        "auto", "auto", (*tokenizer)->info().chat_template.value_or(""));
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_EQ(output->ToString(), model.format);
    const ChatFormat format = MakeChatFormat(*output, **tokenizer);
    EXPECT_EQ(format.arguments_are_text, model.arguments_are_text);
    const auto prompt =
        EncodePrompt({CallAndAnswer(), false, "messages"}, format, **tokenizer);
    ASSERT_TRUE(prompt.ok()) << prompt.status();
    EXPECT_TRUE(absl::StrContains(*prompt->rendered, model.call))
        << *prompt->rendered;
    EXPECT_TRUE(absl::EndsWith(*prompt->rendered, model.after))
        << *prompt->rendered;
    const auto bos = (*tokenizer)->info().bos_token_id;
    if (bos.has_value() && absl::StrContains(*prompt->rendered, "begin")) {
      EXPECT_EQ(
          std::count(prompt->token_ids.begin(), prompt->token_ids.end(), *bos),
          1);
    }
  }
}

}  // namespace
}  // namespace lockstep
