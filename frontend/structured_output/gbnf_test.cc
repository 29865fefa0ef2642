#include "frontend/structured_output/gbnf.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

TEST(Gbnf, IsToldByItsRules) {
  EXPECT_TRUE(IsGbnf("root ::= \"a\""));
  EXPECT_FALSE(IsGbnf("start: \"a\""));
}

TEST(Gbnf, BecomesLark) {
  const struct {
    const char* gbnf;
    const char* lark;
  } kCases[] = {
      {"root ::= \"yes\" | \"no\"", "start: /yes/ | /no/\n"},
      {"root ::= a-b Cd\na-b ::= \"x\"+ # more\nCd::=[^a-z\\n]*",
       "start: r_a-b r__cd\nr_a-b: /x/+\nr__cd: /[^a-z\\n]/*\n"},
      {"root ::= (\"a\" | \"b\"\n  | .){2,3} \"c\"?",
       "start: ( /a/ | /b/ | /(?s:.)/){2,3} /c/?\n"},
      {R"(root ::= "a/b.\"\x41" "")", "start: /a\\/b\\.\\\"\\x41/ \"\"\n"},
      {"root ::= \"a\" |", "start: /a/ | \"\"\n"},
      {"root ::= [a&&b[^]", "start: /[a\\&\\&b\\[\\^]/\n"},
  };
  for (const auto& c : kCases) {
    const auto lark = GbnfToLark(c.gbnf);
    ASSERT_TRUE(lark.ok()) << c.gbnf << ": " << lark.status();
    EXPECT_EQ(*lark, c.lark);
  }
}

TEST(Gbnf, WhatIsWrongHasItsLine) {
  const struct {
    std::string gbnf;
    const char* error;
  } kCases[] = {
      {"a ::= \"x\"", "it has no rule root"},
      {"root ::= \"x\n\"", "line 1 has a text or class that nothing closes"},
      {"root ::= a\na ::= (\"x\"", "line 2 has a ( that nothing closes"},
      {"root ::= \"x\" )", "line 1 has a ) too many"},
      {"root ::= \"x\"{a}", "line 1 has a { that no numbers follow"},
      {"root ::= \"x\"{1", "line 1 has a { without its }"},
      {"\n!", "line 2 has no rule where one must begin"},
      {"root ::= !", "line 1 has \"!\", which begins nothing"},
      {"root ::= " + std::string(100, '('),
       "line 1 has groups that nest too deep"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(GbnfToLark(c.gbnf).status().message(), c.error) << c.gbnf;
  }
}

}  // namespace
}  // namespace lockstep
