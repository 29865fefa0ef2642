#include "frontend/output_parsing/output_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/testing/output/output_cases.h"

namespace lockstep {
namespace {

using testing::ExpectOutputs;
using TF = ToolFormat;
using RF = ReasoningFormat;

TEST(OutputParser, SplitsReasoningFromTheRest) {
  const OutputFormat think = {TF::kNone, RF::kThink};
  const OutputFormat first = {TF::kNone, RF::kThinkFirst};
  const OutputFormat mistral = {TF::kNone, RF::kMistral};
  ExpectOutputs({
      {think, "<think>\nwell\n</think>\n\nHi", "thinks well\nsays Hi\n"},
      {think, " \n<think>a < b </thin></think>c",
       "thinks a < b </thin>\nsays c\n"},
      {think, "Hi <think>x</think>", "says Hi <think>x</think>\n"},
      {think, "<thin", "says <thin\n"},
      {think, "<think>never ends \n", "thinks never ends \n\n"},
      {think, "<think></think>Hi", "says Hi\n"},
      {think, " \n ", "says  \n \n"},
      {think, std::string(70, ' ') + "<think>x</think>",
       "says " + std::string(70, ' ') + "<think>x</think>\n"},
      {think, "\nwell\n</think>\n\nHi", "thinks well\nsays Hi\n", true},
      // Opened by the prompt, and by the model again.
      {think, "\n<think>\nwell</think>Hi", "thinks well\nsays Hi\n", true},
      {first, "well</think>Hi <think>", "thinks well\nsays Hi <think>\n", true},
      {mistral, "[THINK]well[/THINK]Hi", "thinks well\nsays Hi\n"},
      {think, "<think>a" + std::string(99, '\n') + "b</think>c",
       "thinks a" + std::string(99, '\n') + "b\nsays c\n"},
  });
}

TEST(OutputParser, WithoutToolsNothingIsACall) {
  OutputDelta delta;
  const std::string call = "<tool_call>{\"name\":\"f\"}</tool_call>";
  const auto parser = MakeOutputParser({TF::kHermes, RF::kThink}, {});
  parser->Add(call, &delta);
  parser->Finish(&delta);
  EXPECT_EQ(delta.content, call);
  EXPECT_TRUE(delta.tool_calls.empty());
  EXPECT_EQ(MakeOutputParser({TF::kHermes, RF::kNone}, {}), nullptr);

  OutputDelta harmony;
  const auto other = MakeOutputParser({TF::kHarmony, RF::kHarmony}, {});
  other->Add("<|channel|>commentary to=functions.f<|message|>{}", &harmony);
  other->Finish(&harmony);
  EXPECT_EQ(harmony.content, "{}");
}

TEST(OutputParser, AWordIsShownAsSoonAsItCanBeNothingElse) {
  OutputParserOptions options;
  options.has_tools = true;
  options.calls.make_id = [] { return "x"; };
  const auto parser =
      MakeOutputParser({TF::kHermes, RF::kThink}, std::move(options));
  const auto shown = [&](absl::string_view text) {
    OutputDelta delta;
    parser->Add(text, &delta);
    return delta;
  };
  EXPECT_TRUE(shown("<thi").empty());
  EXPECT_EQ(shown("rd").content, "<third");
  EXPECT_EQ(shown(" of").content, " of");
  EXPECT_TRUE(shown(" \n").empty());
  EXPECT_TRUE(shown("<tool_call>{\"name\":\"f\", \"arguments\"").empty());
  const OutputDelta begin = shown(": {\"a");
  ASSERT_EQ(begin.tool_calls.size(), 1);
  EXPECT_EQ(begin.tool_calls[0].name, "f");
  EXPECT_EQ(begin.tool_calls[0].arguments, "{\"a");
  const OutputDelta more = shown("\": 1");
  EXPECT_EQ(more.tool_calls[0].id, "");
  EXPECT_EQ(more.tool_calls[0].arguments, "\": 1");
  EXPECT_EQ(parser->num_whole_calls(), 0);
}

}  // namespace
}  // namespace lockstep
