#include "frontend/structured_output/tool_grammar.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

CallRules Pythonic(const std::string& parameters) {
  return MakeCallRules({.format = ToolFormat::kPythonic}, {{"f", parameters}},
                       /*several=*/false);
}

TEST(ToolGrammar, KeywordsAreInTheOrderOfTheSchema) {
  const std::string rules =
      Pythonic(R"({"properties": {"b": {"$ref": "#/$defs/d"}, "a": {}},
                   "required": ["b"], "$defs": {"d": {"type": "null"}}})")
          .rules;
  EXPECT_TRUE(absl::StrContains(
      rules, R"(f0p0: "b=" %json {"$ref":"#/$defs/d","$defs":{"d":)"))
      << rules;
  EXPECT_TRUE(absl::StrContains(rules, R"(f0p1: "a=" %json {"$defs":{"d":)"))
      << rules;
  // Alone the second may be left out.
  EXPECT_FALSE(absl::StrContains(rules, " | f0p1\n")) << rules;
  EXPECT_TRUE(absl::StrContains(rules, " | f0p2\n")) << rules;
}

// What is compared with all before it, or copied into every rule, would take
// hours and terabytes.
TEST(ToolGrammar, ASchemaOfManyPropertiesTakesBoundedTimeAndMemory) {
  std::string properties, required, definitions;
  for (int i = 0; i < 300'000; ++i) {
    const char* comma = i == 0 ? "" : ",";
    absl::StrAppend(&properties, comma, "\"", i, "\":{}");
    absl::StrAppend(&required, comma, "\"", i, "\"");
    absl::StrAppend(&definitions, comma, "\"d", i, "\":{}");
  }
  const std::string schema =
      absl::StrCat(R"({"properties":{)", properties, R"(},"required":[)",
                   required, R"(],"$defs":{)", definitions, "}}");
  // More than a worker takes, so that it says so.
  const CallRules rules = Pythonic(schema);
  EXPECT_GT(rules.rules.size(), 1 << 20);
  EXPECT_LT(rules.rules.size(), 4 * schema.size());
  EXPECT_LT(LarkArguments({"f", schema}).size(), 2 * schema.size());
}

}  // namespace
}  // namespace lockstep
