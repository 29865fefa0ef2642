#include "frontend/output_parsing/harmony_parser.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/output/output_cases.h"

namespace lockstep {
namespace {

using testing::ExpectOutputs;
using TF = ToolFormat;
using RF = ReasoningFormat;

TEST(HarmonyParser, Harmony) {
  const OutputFormat harmony = {TF::kHarmony, RF::kHarmony};
  const std::string start = "<|start|>assistant";
  ExpectOutputs({
      {harmony,
       "<|channel|>analysis<|message|>User asks.<|end|>" + start +
           "<|channel|>final<|message|>Hi <there><|return|>",
       "thinks User asks.\nsays Hi <there>\n"},
      {harmony,
       "<|channel|>analysis<|message|>a<|end|>" + start +
           "<|channel|>analysis<|message|>b<|end|>" + start +
           "<|channel|>commentary<|message|>I look.<|end|>" + start +
           "<|channel|>commentary to=functions.get_weather <|constrain|>json"
           "<|message|>{\"city\":\"東京\"}<|call|>",
       "thinks a\nb\nsays I look.\ncalls get_weather id0 "
       "{\"city\":\"東京\"}\n"},
      // The recipient may come first, and ends are tokens that no text has.
      {harmony,
       " to=functions.f<|channel|>commentary json<|message|> {\"a\": 1} ",
       "calls f id0 {\"a\": 1}\n"},
      {harmony, "<|channel|>commentary to=functions.f<|message|>",
       "calls f id0 {}\n"},
      {harmony, "<|channel|>commentary to=functions.f<|message|>{\"a\": ",
       "calls f id0 {\"a\": \n0 of 1 whole\n"},
      {harmony, "<|channel|>commentary to=functions.f<|message|>{] x<|call|>",
       "says ] x\ncalls f id0 {\n0 of 1 whole\n"},
      {harmony,
       "<|channel|>analysis to=browser.search<|message|>{}<|call|>" + start +
           "<|channel|>final<|message|>Hi",
       "thinks {}\nsays Hi\n"},
      {harmony,
       "<|channel|>analysis<|message|>hm" + start +
           "<|channel|>final<|message|>Hi",
       "thinks hm\nsays Hi\n"},
      {harmony, "Hi there", "says Hi there\n"},
      {harmony, "<|channel|>fin", ""},
      {harmony, "<|message|>Hi", "says Hi\n"},
      {harmony, "<|channel|>" + std::string(2000, 'x') + "<|message|>Hi",
       "says <|channel|>" + std::string(2000, 'x') + "<|message|>Hi\n"},
      {harmony,
       "<|channel|>commentary to=functions.f<|message|>{} x<|call|>" + start +
           "<|channel|>commentary to=functions.g<|message|>{}",
       "calls f id0 {}\n", false, /*several_calls=*/false},
  });
}

}  // namespace
}  // namespace lockstep
