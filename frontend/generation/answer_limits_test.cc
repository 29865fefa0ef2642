#include "frontend/generation/answer_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/generation/error_detail.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

GenerateSpec ChatSpec(std::vector<Tool> tools) {
  GenerateSpec spec;
  ChatPrompt chat;
  chat.tools = std::move(tools);
  spec.prompt.prompt = std::move(chat);
  return spec;
}

ChatPrompt& ChatOf(GenerateSpec& spec) {
  return std::get<ChatPrompt>(spec.prompt.prompt);
}

const Tool kWeather = {.name = "weather",
                       .json = "",
                       .parameters = R"({"properties":{"city":{}}})"};

ChatFormat Hermes() {
  return {.output = {.tools = ToolFormat::kHermes},
          .calls = {.format = ToolFormat::kHermes}};
}

std::string LarkOf(const GenerateSpec& spec, const ChatFormat& format) {
  const ChatReading reading = {.format = &format};
  const auto grammar = GrammarOf(spec, &reading);
  return grammar.has_value() ? grammar->lark() : "";
}

TEST(AnswerLimits, WhatIsNotLimitedHasNoGrammar) {
  EXPECT_FALSE(GrammarOf(GenerateSpec(), nullptr).has_value());
  EXPECT_EQ(LarkOf(ChatSpec({kWeather}), Hermes()), "");
}

TEST(AnswerLimits, AConstraintAloneIsSentAsItIs) {
  GenerateSpec spec;
  spec.constraint = JsonSchema{R"({"b":1,"a":2})"};
  EXPECT_EQ(GrammarOf(spec, nullptr)->json_schema(), R"({"b":1,"a":2})");
  spec.constraint = Regex{"a+"};
  EXPECT_EQ(GrammarOf(spec, nullptr)->regex(), "a+");
  spec.constraint = LarkGrammar{"start: \"a\""};
  EXPECT_EQ(GrammarOf(spec, nullptr)->lark(), "start: \"a\"");
  spec.constraint = OneOf{{"a", "\"b\"\n"}};
  EXPECT_EQ(GrammarOf(spec, nullptr)->lark(),
            R"(start: "a" | "\"b\"\n")");
}

TEST(AnswerLimits, ARequiredCallHasItsToolsArguments) {
  GenerateSpec spec = ChatSpec({kWeather, {.name = "time", .json = ""}});
  ChatOf(spec).must_call = true;
  EXPECT_THAT(LarkOf(spec, Hermes()), HasSubstr("weather"));
  EXPECT_THAT(LarkOf(spec, Hermes()), HasSubstr("city"));
  EXPECT_THAT(LarkOf(spec, Hermes()), HasSubstr("time"));
  ChatOf(spec).required_tool = "time";
  EXPECT_THAT(LarkOf(spec, Hermes()), Not(HasSubstr("weather")));
}

TEST(AnswerLimits, OnlyStrictToolsLimitWhatMayBeCalled) {
  GenerateSpec spec = ChatSpec({kWeather, {.name = "time", .json = ""}});
  ChatOf(spec).tools[1].is_strict = true;
  const std::string lark = LarkOf(spec, Hermes());
  EXPECT_THAT(lark, HasSubstr("weather"));
  EXPECT_THAT(lark, Not(HasSubstr("city")));
  EXPECT_THAT(lark, HasSubstr("lead"));
}

TEST(AnswerLimits, TheModelThinksFirst) {
  GenerateSpec spec = ChatSpec({});
  spec.constraint = JsonSchema{"{}"};
  ChatFormat format = Hermes();
  format.output.reasoning = ReasoningFormat::kThink;
  EXPECT_THAT(LarkOf(spec, format), HasSubstr("start: thoughts answer"));
  EXPECT_THAT(LarkOf(spec, format), HasSubstr("(\"<think>\" thought SPACE?)?"));
  format.calls.marks = {{"<think>", 7}, {"</think>", 8}};
  EXPECT_THAT(LarkOf(spec, format), HasSubstr("thought: TEXT? <[8]>"));
}

TEST(AnswerLimits, RefusalsNameTheClientsField) {
  GenerateSpec spec;
  spec.constraint = JsonSchema{"{}"};
  spec.constraint_field = "response_format";
  const absl::Status refused = InClientsWords(
      absl::InvalidArgumentError("grammar.lark is refused: it is bad."), spec);
  EXPECT_EQ(refused.message(), "response_format is refused: it is bad.");
  EXPECT_EQ(FieldOf(refused), "response_format");
  const absl::Status other = absl::InvalidArgumentError("temperature is -1.");
  EXPECT_EQ(InClientsWords(other, spec), other);
  EXPECT_TRUE(InClientsWords(absl::OkStatus(), spec).ok());
}

}  // namespace
}  // namespace lockstep
