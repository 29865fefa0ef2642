#include "frontend/output_parsing/tool_call_parser.h"

#include <gtest/gtest.h>

#include <string>

#include "frontend/output_parsing/marks.h"
#include "tests/testing/output/output_cases.h"

namespace lockstep {
namespace {

using testing::ExpectOutputs;
using TF = ToolFormat;
using RF = ReasoningFormat;

TEST(ToolCallParser, Hermes) {
  const OutputFormat hermes = {TF::kHermes, RF::kThink};
  ExpectOutputs({
      {hermes,
       "<think>\nhm\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", "
       "\"arguments\": {\"city\": \"Z\\\"ü}rich\", \"days\": [1, {}]}}\n"
       "</tool_call>",
       "thinks hm\ncalls get_weather id0 {\"city\": \"Z\\\"ü}rich\", "
       "\"days\": [1, {}]}\n"},
      {hermes,
       "Let me see.\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n"
       "<tool_call>\n{\"arguments\": {\"a\": 1}, \"name\": \"g\"}\n"
       "</tool_call> \n",
       "says Let me see.\ncalls f id0 {}\ncalls g id1 {\"a\": 1}\n"},
      {hermes, "<tool_call>{\"name\":\"f\"}</tool_call>", "calls f id0 {}\n"},
      {hermes,
       "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\", "
       "\"x\": [1]}</tool_call>",
       "calls f id0 {\"a\": 1}\n"},
      {hermes,
       "<tool_call>{\"id\": \"c7\", \"name\": \"f\", \"arguments\": {}, "
       "\"x\": \"}\"}</tool_call>ok",
       "says ok\ncalls f c7 {}\n"},
      // The end is missing, or all but the start of it.
      {hermes, "<tool_call>{\"name\":\"f\",\"arguments\":{}}",
       "calls f id0 {}\n"},
      {hermes, "<tool_call>{\"name\":\"f\",\"arguments\":{}}\n</tool",
       "calls f id0 {}\n"},
      {hermes, "<tool_call>{\"name\":\"f\",\"arguments\":{}} and more",
       "says and more\ncalls f id0 {}\n"},
      // Cut off within the arguments, and before them.
      {hermes, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": \"b",
       "calls f id0 {\"a\": \"b\n0 of 1 whole\n"},
      {hermes, "Hm\n<tool_call>{\"name\":\"f\",\"argum",
       "says Hm\n<tool_call>{\"name\":\"f\",\"argum\n"},
      // No calls.
      {hermes, "a <tool_call> b", "says a <tool_call> b\n"},
      {hermes, "a <tool_call>{\"x\": 1}</tool_call>",
       "says a <tool_call>{\"x\": 1}</tool_call>\n"},
      {hermes, "<tool_call>{\"name\": 7}</tool_call>",
       "says <tool_call>{\"name\": 7}</tool_call>\n"},
      {hermes,
       "<tool_call>nothing</tool_call><tool_call>{\"name\":\"f\"}</tool_call>",
       "says <tool_call>nothing</tool_call>\ncalls f id0 {}\n"},
      {hermes, "if a < b: <tool", "says if a < b: <tool\n"},
      {hermes, std::string("\0<", 2), std::string("says \0<\n", 8)},
      // Brackets that do not match.
      {hermes,
       "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": [1}}</tool_call>",
       "says }}</tool_call>\ncalls f id0 {\"a\": [1\n0 of 1 whole\n"},
      // One call is enough.
      {hermes,
       "a<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call> b "
       "<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>",
       "says a\ncalls f id0 {}\n", false, /*several_calls=*/false},
  });
}

TEST(ToolCallParser, Llama3Json) {
  const OutputFormat llama = {TF::kLlama3Json, RF::kNone};
  ExpectOutputs({
      {llama, "{\"name\": \"f\", \"parameters\": {\"a\": \"1\"}}",
       "calls f id0 {\"a\": \"1\"}\n"},
      {llama,
       "<|python_tag|>{\"type\": \"function\", \"name\": \"other\", "
       "\"parameters\": {}}",
       "calls other id0 {}\n"},
      {llama,
       "{\"name\":\"f\",\"parameters\":{}}; {\"name\":\"g\",\"parameters\":"
       "{\"x\":1}}",
       "calls f id0 {}\ncalls g id1 {\"x\":1}\n"},
      {llama, "{\"name\":\"f\",\"parameters\":{}}; {\"name\":\"g\",\"para",
       "says ; {\"name\":\"g\",\"para\ncalls f id0 {}\n"},
      {llama, "{\"name\":\"f\",\"parameters\":{}}; and so on",
       "says ; and so on\ncalls f id0 {}\n"},
      {llama, "{\"name\":\"f\",\"parameters\":{}}\n\nDone.",
       "says Done.\ncalls f id0 {}\n"},
      // JSON, but no call of a tool that was offered.
      {llama, " {\"name\": \"other\", \"parameters\": {}}",
       "says  {\"name\": \"other\", \"parameters\": {}}\n"},
      {llama, "{\"name\": \"f\", \"age\": 3}",
       "says {\"name\": \"f\", \"age\": 3}\n"},
      {llama, "{\"a\": [1, 2]}", "says {\"a\": [1, 2]}\n"},
      {llama, "Use {\"name\": \"f\", \"parameters\": {}}",
       "says Use {\"name\": \"f\", \"parameters\": {}}\n"},
      {llama, "<|python_tag|>print(1)", "says <|python_tag|>print(1)\n"},
      {llama, "{", "says {\n"},
  });
}

TEST(ToolCallParser, Pythonic) {
  const OutputFormat pythonic = {TF::kPythonic, RF::kNone};
  ExpectOutputs({
      {pythonic, "[f(a=1, b=\"x\", c=[True, None, {'k': -1.5e3}]), g()]",
       "calls f id0 {\"a\": 1, \"b\": \"x\", \"c\": [true, null, {\"k\": "
       "-1.5e3}]}\ncalls g id1 {}\n"},
      {pythonic, "<|python_start|>[f(s='it\\'s \\u00e9\\n)')]<|python_end|>",
       "calls f id0 {\"s\": \"it's é\\n)\"}\n"},
      {pythonic, "[f(a=1)] \n", "calls f id0 {\"a\": 1}\n"},
      {pythonic, "[f(a=1)] then", "says then\ncalls f id0 {\"a\": 1}\n"},
      {pythonic, "[f(a=1), g(b=", "says , g(b=\ncalls f id0 {\"a\": 1}\n"},
      {pythonic, "[f(a=1), g(7)]", "says , g(7)]\ncalls f id0 {\"a\": 1}\n"},
      {pythonic, "[other(a=1)]", "says [other(a=1)]\n"},
      {pythonic, "[1, 2, 3]", "says [1, 2, 3]\n"},
      {pythonic, "[f](https://a.b/)", "says [f](https://a.b/)\n"},
      {pythonic, "[f(a=0x1f)]", "says [f(a=0x1f)]\n"},
      {pythonic, "See [f(a=1)]", "says See [f(a=1)]\n"},
      {pythonic, "[f(a=1), g(a=2)]", "calls f id0 {\"a\": 1}\n", false,
       /*several_calls=*/false},
  });
}

TEST(ToolCallParser, Mistral) {
  const OutputFormat mistral = {TF::kMistral, RF::kMistral};
  ExpectOutputs({
      {mistral,
       "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": "
       "\"g\", \"arguments\": {}, \"id\": \"x\"}]",
       "calls f id0 {\"a\": 1}\ncalls g id1 {}\n"},
      {mistral, "Hi[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}] ",
       "says Hi\ncalls f id0 {}\n"},
      {mistral,
       "[THINK]hm[/THINK][TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g"
       "[CALL_ID]abc123DEF[ARGS]{}",
       "thinks hm\ncalls f id0 {\"a\": 1}\ncalls g abc123DEF {}\n"},
      {mistral, "[TOOL_CALLS]f{\"a\": 1}", "calls f id0 {\"a\": 1}\n"},
      {mistral,
       "[TOOL_CALLS]f[ARGS]{\"a\":", "calls f id0 {\"a\":\n0 of 1 whole\n"},
      {mistral, "[TOOL_CALLS]f[AR", "says [TOOL_CALLS]f[AR\n"},
      {mistral, "[TOOL_CALLS]f and g", "says [TOOL_CALLS]f and g\n"},
      {mistral, "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}, 7]",
       "says , 7]\ncalls f id0 {}\n"},
      {mistral, "[TOOL", "says [TOOL\n"},
  });
}

TEST(ToolCallParser, DeepSeek) {
  const OutputFormat deepseek = {TF::kDeepSeek, RF::kThink};
  ExpectOutputs({
      {deepseek,
       "hm</think>Let me.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function"
       "<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"東京\"}\n```"
       "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n"
       "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "thinks hm\nsays Let me.\ncalls get_weather id0 {\"city\": \"東京\"}\n"
       "calls g id1 {}\n",
       true},
      {deepseek,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}"
       "<｜tool▁call▁end｜><｜tool▁call▁begin｜>g<｜tool▁sep｜>{}"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "calls f id0 {\"a\": 1}\ncalls g id1 {}\n"},
      // One of either kind.
      {deepseek,
       "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```"
       "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>g<｜tool▁sep｜>{}"
       "<｜tool▁call▁end｜>",
       "calls f id0 {}\ncalls g id1 {}\n"},
      {deepseek, "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜>.",
       "says .\ncalls f id0 {}\n"},
      {deepseek,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": ",
       "calls f id0 {\"a\": \n0 of 1 whole\n"},
      {deepseek, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f",
       "says <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f\n"},
      {deepseek, "<｜tool▁calls▁begin｜>none",
       "says <｜tool▁calls▁begin｜>none\n"},
  });
}

TEST(ToolCallParser, WhatIsTooLongToBeHeldBackIsContent) {
  const std::string space(kMaxHeldBytes, ' ');
  const std::string value(kMaxHeldBytes, 'x');
  const OutputFormat hermes = {TF::kHermes, RF::kNone};
  const std::string late = "<tool_call>{\"arguments\": {\"a\": \"" + value +
                           "\"}, \"name\": \"f\"}</tool_call>";
  const std::string early = "{\"a\": \"" + value + "\"}";
  ExpectOutputs({
      {hermes, late, "says " + late + "\n"},
      {hermes, "<tool_call>{\"name\":\"f\",\"arguments\":" + early + "}",
       "calls f id0 " + early + "\n"},
      {hermes, "<tool_call>" + space + "{\"name\":\"f\"}",
       "says <tool_call>" + space + "{\"name\":\"f\"}\n"},
      {hermes, "<tool_call>{\"name\":\"f\"}" + space + "x",
       "says x\ncalls f id0 {}\n"},
  });
}

}  // namespace
}  // namespace lockstep
