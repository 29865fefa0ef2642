#include "frontend/output_parsing/python_literal.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

// As an argument: something follows.
std::string ToJson(const std::string& python) {
  std::string json;
  size_t at = 0;
  const std::string text = python + ")";
  switch (ScanPythonLiteral(text, &at, &json)) {
    case Scan::kMore:
      return "more";
    case Scan::kBroken:
      return "broken";
    case Scan::kWhole:
      break;
  }
  EXPECT_EQ(at, python.size());
  return json;
}

TEST(PythonLiteral, BecomesJson) {
  const struct {
    std::string python, json;
  } kCases[] = {
      {"1", "1"},
      {"-1.50e+3", "-1.50e+3"},
      {"123456789012345678901234567890", "123456789012345678901234567890"},
      {"True", "true"},
      {"None", "null"},
      {"false", "false"},
      {"'it\\'s \"x\"'", R"("it's \"x\"")"},
      {R"("a\n\\\t\x41\u00e9\U0001F600\q")", R"("a\n\\\tAé😀\\q")"},
      {"'a\\\nb'", R"("ab")"},
      {"'\\ud83d'", "\"\ufffd\ufffd\ufffd\""},
      {"[1, 'a', []]", R"([1, "a", []])"},
      {"(1, (2,), )", "[1, [2]]"},
      {"{'a': {1: None}, True: []}", R"({"a": {"1": null}, "true": []})"},
      {"{}", "{}"},
  };
  for (const auto& c : kCases) EXPECT_EQ(ToJson(c.python), c.json) << c.python;
}

TEST(PythonLiteral, WhatJsonHasNotIsBroken) {
  for (const char* python : {"0x10", "nan", "1_000", "f(x", "{1, 2}", "[1 2]",
                             "{[]: 1}", "'\\xg1'", "'\\U00110000'", "1+2"}) {
    EXPECT_EQ(ToJson(python), "broken") << python;
  }
  EXPECT_EQ(ToJson(std::string(100, '[')), "broken");
}

TEST(PythonLiteral, WhatHasNotEndedIsUndecided) {
  for (const char* python :
       {"", " ", "'a", "'\\", "'\\u00e", "[1, ", "{'a': "}) {
    std::string json;
    size_t at = 0;
    EXPECT_EQ(ScanPythonLiteral(python, &at, &json), Scan::kMore) << python;
    EXPECT_EQ(at, 0);
  }
  std::string json;
  size_t at = 0;
  EXPECT_EQ(ScanPythonLiteral("12", &at, &json), Scan::kMore);
}

TEST(PythonLiteral, NamesHaveDots) {
  std::string name;
  size_t at = 0;
  EXPECT_EQ(ScanPythonName(" a.b_1(", &at, &name), Scan::kWhole);
  EXPECT_EQ(name, "a.b_1");
  EXPECT_EQ(ScanPythonName(" a.b_1(", &at, &name), Scan::kBroken);
  at = 0;
  EXPECT_EQ(ScanPythonName("abc", &at, &name), Scan::kMore);
  EXPECT_EQ(ScanPythonName("1a(", &at, &name), Scan::kBroken);
}

}  // namespace
}  // namespace lockstep
