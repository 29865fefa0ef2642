#include "frontend/output_parsing/output_format.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

std::string Choose(const std::string& tools, const std::string& reasoning,
                   absl::string_view chat_template) {
  const auto format = ChooseOutputFormat(tools, reasoning, chat_template);
  return format.ok() ? format->ToString()
                     : std::string(format.status().message());
}

// Of each family's template, what it writes around a call and a thought.
TEST(OutputFormat, FollowsFromTheChatTemplate) {
  const struct {
    const char* chat_template;
    const char* format;
  } kCases[] = {
      {"", "tool calls none, reasoning none"},
      {"{{ message.content }}<|im_end|>", "tool calls none, reasoning none"},
      // Hermes, Qwen 2.5; Qwen 3; Qwen3-Coder; GLM-4.5.
      {"'<tool_call>\\n{\"name\": \"'", "tool calls hermes, reasoning none"},
      {"'<think>\\n' '<tool_call>\\n{\"name\": '",
       "tool calls hermes, reasoning think"},
      {"<tool_call>\\n<function=", "tool calls none, reasoning none"},
      {"<tool_call>{name}\\n<arg_key>", "tool calls none, reasoning none"},
      // Llama 3.1; Llama 4.
      {"<|python_tag|>' + tool_call.name",
       "tool calls llama3_json, reasoning none"},
      {"'<|python_start|>' '<|python_end|>'",
       "tool calls pythonic, reasoning none"},
      // Mistral; Magistral.
      {"\"[TOOL_CALLS]\"", "tool calls mistral, reasoning none"},
      {"[THINK] [TOOL_CALLS]", "tool calls mistral, reasoning mistral"},
      // DeepSeek V3; R1; V3.1.
      {"'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>'",
       "tool calls deepseek, reasoning none"},
      {"content.split('</think>')[-1] '<｜tool▁calls▁begin｜>'",
       "tool calls deepseek, reasoning think"},
      // gpt-oss.
      {"\"<|start|>assistant<|channel|>analysis<|message|>\"",
       "tool calls harmony, reasoning harmony"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Choose("auto", "auto", c.chat_template), c.format)
        << c.chat_template;
  }
}

TEST(OutputFormat, ANameWinsOverTheTemplate) {
  EXPECT_EQ(Choose("llama3_json", "none", "<think><tool_call>"),
            "tool calls llama3_json, reasoning none");
  EXPECT_EQ(Choose("auto", "think_first", "<tool_call>"),
            "tool calls hermes, reasoning think_first");
  EXPECT_EQ(Choose("qwen", "auto", ""),
            "--tool_call_parser is \"qwen\"; it must be one of auto, none, "
            "hermes, llama3_json, pythonic, mistral, deepseek, harmony.");
  EXPECT_EQ(Choose("auto", "", ""),
            "--reasoning_parser is \"\"; it must be one of auto, none, think, "
            "think_first, mistral, harmony.");
  EXPECT_EQ(Choose("auto", "none", "<|channel|>"),
            "--tool_call_parser and --reasoning_parser come to tool calls "
            "harmony, reasoning none; harmony is for both or neither.");
}

TEST(OutputFormat, ThePromptTellsWhetherReasoningIsOpen) {
  const auto think = ReasoningFormat::kThink;
  const auto first = ReasoningFormat::kThinkFirst;
  EXPECT_TRUE(StartsInReasoning(think, "<|Assistant|><think>\n"));
  EXPECT_FALSE(StartsInReasoning(think, "<|Assistant|>"));
  EXPECT_FALSE(StartsInReasoning(think, "is <think> a tag?<|Assistant|>"));
  EXPECT_FALSE(StartsInReasoning(think, "<think>\n\n</think>\n\n"));
  EXPECT_TRUE(StartsInReasoning(first, "<|Assistant|>"));
  EXPECT_FALSE(StartsInReasoning(first, "<|Assistant|></think>"));
  EXPECT_TRUE(StartsInReasoning(ReasoningFormat::kMistral, "[THINK]"));
  EXPECT_FALSE(StartsInReasoning(ReasoningFormat::kNone, "<think>"));
  EXPECT_FALSE(StartsInReasoning(ReasoningFormat::kHarmony, "<think>"));
}

TEST(OutputFormat, AMessageThatGoesOnMayHaveOpenedIt) {
  const auto think = ReasoningFormat::kThink;
  EXPECT_TRUE(LeavesReasoningOpen(think, "<think>\nSo "));
  EXPECT_FALSE(LeavesReasoningOpen(think, "<think>\nSo</think>\nIt"));
  EXPECT_FALSE(LeavesReasoningOpen(think, "It is"));
  EXPECT_FALSE(LeavesReasoningOpen(ReasoningFormat::kNone, "<think>"));
}

TEST(OutputFormat, MarksAreThoseOfBoth) {
  const auto marks =
      MarksOf(OutputFormat{ToolFormat::kHermes, ReasoningFormat::kThink});
  EXPECT_EQ(marks, (std::vector<absl::string_view>{
                       "<tool_call>", "</tool_call>", "<think>", "</think>"}));
  EXPECT_TRUE(MarksOf(OutputFormat{}).empty());
}

}  // namespace
}  // namespace lockstep
