#include "frontend/generation/chat_renderer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/testing/fake_tokenizer.h"

namespace lockstep {
namespace {

absl::StatusOr<std::string> Render(const ChatPrompt& chat,
                                   const ChatFormat& format = {}) {
  return RenderChat("messages", chat, format, FakeTokenizer());
}

TEST(ChatRenderer, WhatTheTemplateRefusesHasItsWords) {
  const ChatPrompt chat = {{{"raise", "roles must alternate"}}};
  EXPECT_EQ(Render(chat).status(),
            absl::InvalidArgumentError(
                "messages cannot be rendered: roles must alternate"));
  EXPECT_EQ(RenderChat("messages", chat, ChatFormat(),
                       FakeTokenizer(/*has_chat_template=*/false))
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

// Shows the variables as they are.
class EchoTokenizer : public FakeTokenizer {
 public:
  absl::StatusOr<std::string> RenderChat(
      absl::string_view context_json) const override {
    return std::string(context_json);
  }
};

std::string Context(const ChatPrompt& chat, const ChatFormat& format = {}) {
  return *RenderChat("messages", chat, format, EchoTokenizer());
}

TEST(ChatRenderer, ToolsAndCallsAreAsHuggingFaceHasThem) {
  ChatPrompt chat = {{{"user", "hi"}}};
  chat.tools = {{"f", R"({"type":"function","function":{"z":1,"a":2}})"}};
  ChatTurn& call = chat.messages.emplace_back();
  call.role = "assistant";
  call.reasoning = "hm";
  call.tool_calls = {{"c1", "f", R"({"b": 1, "a": [2]})"}};
  chat.messages.push_back({"tool", "7", "", "", {}, "c1"});
  const std::string head =
      R"({"messages":[{"role":"user","content":"hi"},)"
      R"({"role":"assistant","content":null,"reasoning_content":"hm",)"
      R"("thinking":"hm","tool_calls":[{"type":"function","function":)"
      R"({"name":"f","arguments":)";
  const std::string tail =
      R"(},"id":"c1"}]},{"role":"tool","content":"7","tool_call_id":"c1"}],)"
      R"("add_generation_prompt":true,"tools":[{"type":"function",)"
      R"("function":{"z":1,"a":2}}]})";
  EXPECT_EQ(Context(chat), head + R"({"b":1,"a":[2]})" + tail);
  ChatFormat format;
  format.arguments_are_text = true;
  EXPECT_EQ(Context(chat, format), head + R"("{\"b\": 1, \"a\": [2]}")" + tail);
}

// What a model has written may be no JSON, or too deep to be walked over.
TEST(ChatRenderer, ArgumentsThatAreNoObjectStayAText) {
  ChatPrompt chat = {{{"assistant", "so"}}};
  for (const std::string& arguments :
       {std::string("{\"a\": "), std::string("[1]"),
        std::string(99'999, '[')}) {
    chat.messages[0].tool_calls = {{"", "f", arguments}};
    const auto context = nlohmann::json::parse(Context(chat));
    EXPECT_EQ(context["messages"][0]["tool_calls"][0]["function"]["arguments"],
              arguments);
    EXPECT_EQ(context["messages"][0]["content"], "so");
  }
}

// {"0":0,…}. A time that grows with the square of the keys would be hours.
std::string ManyKeys() {
  std::string json;
  for (int i = 0; i < 1'000'000; ++i) {
    json += (i == 0 ? "{\"" : ",\"") + std::to_string(i) + "\":0";
  }
  return json + "}";
}

TEST(ChatRenderer, ObjectsMayHaveManyKeys) {
  const std::string many = ManyKeys();
  ChatPrompt chat = {{{"user", "hi"}}};
  chat.template_arguments = many;
  EXPECT_EQ(Context(chat), R"({"messages":[{"role":"user","content":"hi"}],)"
                           R"("add_generation_prompt":true,)" +
                               many.substr(1));
  chat = {{{"user", "hi"}}};
  chat.tools = {{"f", many}};
  EXPECT_EQ(Context(chat), R"({"messages":[{"role":"user","content":"hi"}],)"
                           R"("add_generation_prompt":true,"tools":[)" +
                               many + "]}");
  chat = {{{"assistant", "so"}}};
  chat.messages[0].tool_calls = {{"", "f", many}};
  EXPECT_EQ(Context(chat),
            R"({"messages":[{"role":"assistant","content":"so","tool_calls":[)"
            R"({"type":"function","function":{"name":"f","arguments":)" +
                many + R"(}}]}],"add_generation_prompt":true})");
}

TEST(ChatRenderer, ArgumentsAreVariablesOfTheTemplate) {
  ChatPrompt chat = {{{"user", "hi"}}};
  chat.template_arguments = R"({"add_generation_prompt": false})";
  EXPECT_EQ(*Render(chat), "<bos>[user]hi");
}

}  // namespace
}  // namespace lockstep
