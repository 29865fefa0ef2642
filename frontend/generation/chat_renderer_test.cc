#include "frontend/generation/chat_renderer.h"

#include <gtest/gtest.h>

#include "tests/testing/fake_tokenizer.h"

namespace lockstep {
namespace {

absl::StatusOr<std::string> Render(const ChatPrompt& chat) {
  return RenderChat("messages", chat, FakeTokenizer());
}

TEST(ChatRenderer, WhatTheTemplateRefusesHasItsWords) {
  const ChatPrompt chat = {{{"raise", "roles must alternate"}}};
  EXPECT_EQ(Render(chat).status(),
            absl::InvalidArgumentError(
                "messages cannot be rendered: roles must alternate"));
  EXPECT_EQ(
      RenderChat("messages", chat, FakeTokenizer(/*has_chat_template=*/false))
          .status(),
      absl::InvalidArgumentError(
          "messages cannot be rendered: the model has no chat template; "
          "send a text or token ids."));
}

TEST(ChatRenderer, AChatThatIsTooLongAsJsonIsNamedAsTheClientKnowsIt) {
  const ChatPrompt chat = {{{"user", std::string(4 << 20, '\x01')}}};
  EXPECT_EQ(Render(chat).status(),
            absl::InvalidArgumentError(
                "messages is 25165896 bytes long as JSON, where some "
                "characters take more; at most 16777216 are allowed."));
}

TEST(ChatRenderer, TheLastMessageIsLeftOpenToGoOnWith) {
  ChatPrompt chat = {{{"user", "hi"}, {"assistant", "  The \n"}}};
  chat.add_generation_prompt = false;
  chat.continue_final_message = true;
  EXPECT_EQ(*Render(chat), "<bos>[user]hi[assistant]  The \n");
  chat.messages[1].content = " \n";
  EXPECT_EQ(Render(chat).status(),
            absl::InvalidArgumentError(
                "messages cannot be continued: the chat template does not "
                "write the text of the last message as it is."));
}

TEST(ChatRenderer, ArgumentsAreVariablesOfTheTemplate) {
  ChatPrompt chat = {{{"user", "hi"}}};
  chat.template_arguments = R"({"add_generation_prompt": false})";
  EXPECT_EQ(*Render(chat), "<bos>[user]hi");
}

}  // namespace
}  // namespace lockstep
