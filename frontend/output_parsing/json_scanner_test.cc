#include "frontend/output_parsing/json_scanner.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(JsonScanner, FindsTheEndOfAnObject) {
  const struct {
    std::string text;
    size_t size;
    Scan state;
  } kCases[] = {
      {"{} x", 2, Scan::kWhole},
      {"[{\"a\": \"}]\\\"\"}, 1]]", 18, Scan::kWhole},
      {"{\"a\": [1, 2", 11, Scan::kMore},
      {"{\"a\": [1}", 8, Scan::kBroken},
      {"x", 0, Scan::kBroken},
      {"", 0, Scan::kMore},
  };
  for (const auto& c : kCases) {
    JsonScanner at_once, by_byte;
    EXPECT_EQ(at_once.Add(c.text), c.size) << c.text;
    EXPECT_EQ(at_once.state(), c.state) << c.text;
    size_t size = 0;
    for (const char byte : c.text) size += by_byte.Add({&byte, 1});
    EXPECT_EQ(size, c.size) << c.text;
    EXPECT_EQ(by_byte.state(), c.state) << c.text;
  }
}

TEST(JsonScanner, IsNotDeepForEver) {
  JsonScanner scanner;
  const std::string deep(JsonScanner::kMaxDepth + 1, '[');
  EXPECT_EQ(scanner.Add(deep), JsonScanner::kMaxDepth);
  EXPECT_EQ(scanner.state(), Scan::kBroken);
}

TEST(JsonScanner, ReadsStringsWithTheirEscapes) {
  const struct {
    std::string text;
    Scan scan;
    std::string value;
  } kCases[] = {
      {" \"a\\\"\\u00e9\" ", Scan::kWhole, "a\"é"},
      {"\"a\\\"", Scan::kMore, ""},
      {" ", Scan::kMore, ""},
      {"a", Scan::kBroken, ""},
      {"\"\\x\"", Scan::kBroken, ""},
  };
  for (const auto& c : kCases) {
    size_t at = 0;
    std::string value;
    EXPECT_EQ(ScanString(c.text, &at, &value), c.scan) << c.text;
    EXPECT_EQ(value, c.value);
    EXPECT_EQ(at, c.scan == Scan::kWhole ? c.text.size() - 1 : 0);
  }
}

TEST(JsonScanner, SkipsValuesOfEveryKind) {
  for (const std::string value :
       {"1.5e3", "null", "\"a,b\"", "[1, [2]]", "{\"a\": {}}"}) {
    size_t at = 0;
    EXPECT_EQ(ScanValue(value + ", ", &at), Scan::kWhole);
    EXPECT_EQ(at, value.size());
  }
  size_t at = 0;
  EXPECT_EQ(ScanValue("12", &at), Scan::kMore);  // it may go on
  EXPECT_EQ(ScanValue(", 1", &at), Scan::kBroken);
}

TEST(JsonScanner, FindsMarksBehindWhiteSpace) {
  size_t at = 1;
  EXPECT_EQ(ScanMark("x \n<e", &at, "<end>"), Scan::kMore);
  EXPECT_EQ(ScanMark("x <ex", &at, "<end>"), Scan::kBroken);
  EXPECT_EQ(ScanMark("x <end>", &at, "<end>"), Scan::kWhole);
  EXPECT_EQ(at, 7);
}

}  // namespace
}  // namespace lockstep
