#include "frontend/chat/conversation.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

using Action = Conversation::Action;

std::string Shown(const Conversation& conversation) {
  std::string text;
  const v1::ChatPrompt prompt = conversation.prompt();
  for (const auto& message : prompt.messages()) {
    absl::StrAppend(&text, message.role(), ":", message.content(), "|");
  }
  return text;
}

TEST(Conversation, KeepsTheHistory) {
  Conversation conversation("Be brief.");
  EXPECT_EQ(conversation.OnLine(" hello \n").action, Action::kAsk);
  EXPECT_EQ(Shown(conversation), "system:Be brief.|user:hello|");
  conversation.OnAnswer("Hi!");
  conversation.OnLine("and now?");
  EXPECT_EQ(Shown(conversation),
            "system:Be brief.|user:hello|assistant:Hi!|user:and now?|");
}

TEST(Conversation, ForgetsAQuestionThatGotNoAnswer) {
  Conversation conversation("");
  conversation.OnLine("hello");
  conversation.OnAnswer("");
  conversation.OnLine("again");
  EXPECT_EQ(Shown(conversation), "user:again|");
}

TEST(Conversation, ResetKeepsTheSystemMessageAlone) {
  Conversation conversation("Be brief.");
  conversation.OnLine("hello");
  conversation.OnAnswer("Hi!");
  EXPECT_EQ(conversation.OnLine("/reset").action, Action::kShow);
  EXPECT_EQ(Shown(conversation), "system:Be brief.|");
}

TEST(Conversation, Commands) {
  Conversation conversation("");
  EXPECT_EQ(conversation.OnLine("").action, Action::kNothing);
  EXPECT_EQ(conversation.OnLine("/exit").action, Action::kLeave);
  EXPECT_EQ(conversation.OnLine("/help").action, Action::kShow);
  const Conversation::Reaction unknown = conversation.OnLine("/quit now");
  EXPECT_EQ(unknown.action, Action::kRefuse);
  EXPECT_EQ(unknown.text, "There is no command /quit now; /help lists them.");
  EXPECT_EQ(Shown(conversation), "");
}

TEST(Conversation, TwoSlashesAreText) {
  Conversation conversation("");
  EXPECT_EQ(conversation.OnLine("//etc").action, Action::kAsk);
  EXPECT_EQ(Shown(conversation), "user:/etc|");
}

}  // namespace
}  // namespace lockstep
