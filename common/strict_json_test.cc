#include "common/strict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(StrictJson, ParsesWhatIsWellFormed) {
  const auto value =
      ParseStrictJson(R"({"a": {"x": 1}, "b": [{"x": 2}, {"x": 3}]})", "f");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ((*value)["b"][1]["x"], 3);
}

TEST(StrictJson, AFileThatIsNotThereIsNotFound) {
  EXPECT_EQ(ReadStrictJson("no_such.json").status().code(),
            absl::StatusCode::kNotFound);
}

// {"a":{"a":…1…}}
std::string NestedObjects(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += R"({"a":)";
  return text + "1" + std::string(depth, '}');
}

TEST(StrictJson, RefusesTheRestByNameAndPlace) {
  struct Case {
    std::string text;
    const char* message;
  };
  const Case cases[] = {
      {"", "f.json is not valid JSON"},
      {"{\"a\": 1", "line 1, column 8"},
      {"{} {}", "f.json is not valid JSON"},
      {"\"\xff\"", "ill-formed UTF-8"},
      {"[1e999]", "number overflow"},
      {R"({"a": 1, "b": {}, "a": 2})", "the key \"a\" is there twice"},
      {R"([{"b": {"a": 1, "a": 2}}])", "the key \"a\" is there twice"},
      {std::string(33, '[') + std::string(33, ']'),
       "nested deeper than 32 levels"},
      // Objects are dropped as arrays are, and so are their keys.
      {std::string(32, '[') + R"({"a":1})" + std::string(32, ']'),
       "nested deeper than 32 levels"},
      {NestedObjects(33), "nested deeper than 32 levels"},
      {NestedObjects(4000), "nested deeper than 32 levels"},
      {std::string(1 << 20, '['), "nested deeper than 32 levels"},
      {std::string(1 << 18, '[') + std::string(1 << 18, ']'),
       "nested deeper than 32 levels"},
  };
  for (const Case& c : cases) {
    const auto value = ParseStrictJson(c.text, "f.json");
    SCOPED_TRACE(c.text.substr(0, 40));
    EXPECT_EQ(value.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(value.status().message()), HasSubstr(c.message));
  }
}

// In a time that grows with the square of it this would take hours.
TEST(StrictJson, ManyObjectsTakeNoLongerThanOtherValues) {
  std::string items = "[", members = "{";
  for (int i = 0; i < 1'000'000; ++i) {
    items += i == 0 ? "{}" : ",{}";
    members += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":{}";
  }
  EXPECT_EQ(ParseStrictJson(items + "]", "f.json")->size(), 1'000'000);
  EXPECT_EQ(ParseStrictJson(members + "}", "f.json")->size(), 1'000'000);
}

TEST(StrictJson, KeysMayKeepTheirOrder) {
  const std::string text =
      R"({"z":1,"a":[{"c":"x","b":[]},null,{"b":{},"a":-2.5}],"m":{"y":true,"x":{"":0}}})";
  EXPECT_EQ(ParseOrderedJson(text, "f")->dump(), text);
  for (const char* value : {"7", "[]", "{}", "\"a\"", "null"}) {
    EXPECT_EQ(ParseOrderedJson(value, "f")->dump(), value);
  }
  for (const std::string& bad : {std::string(R"([{"a": 1, "a": 2}])"),
                                 NestedObjects(33), std::string("{\"a\": 1")}) {
    EXPECT_EQ(ParseOrderedJson(bad, "f").status(),
              ParseStrictJson(bad, "f").status());
  }
}

TEST(StrictJson, AMemberIsReadWithoutTheOthers) {
  const std::string text =
      R"({"a":{"z":1,"b":{"a":2}},"b":{"z":[{"y":0,"b":1}],"a":"b"},"c":[1]})";
  const auto member = [&](absl::string_view name) {
    return ParseOrderedMember(text, name, "f")->dump();
  };
  EXPECT_EQ(member("a"), R"({"z":1,"b":{"a":2}})");
  EXPECT_EQ(member("b"), R"({"z":[{"y":0,"b":1}],"a":"b"})");
  EXPECT_EQ(member("c"), "[1]");
  EXPECT_EQ(member("z"), "null");
  EXPECT_EQ(ParseOrderedMember("[1]", "a", "f")->dump(), "null");
}

// Each would take hours if a key were compared with all before it, or an
// object's end looked through what the object lies in.
TEST(StrictJson, KeepingTheOrderTakesNoLonger) {
  std::string items = "[", members = "{";
  for (int i = 0; i < 1'000'000; ++i) {
    items += i == 0 ? "{}" : ",{}";
    members += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":{}";
  }
  items += "]";
  members += "}";
  EXPECT_EQ(ParseOrderedJson(items, "f")->size(), 1'000'000);
  EXPECT_EQ(ParseOrderedJson(members, "f")->size(), 1'000'000);
  const std::string object = "{\"before\":" + members + ",\"a\":" + items + "}";
  EXPECT_EQ(ParseOrderedMember(object, "a", "f")->size(), 1'000'000);
  EXPECT_EQ(ParseOrderedMember(object, "before", "f")->size(), 1'000'000);
}

TEST(StrictJson, WhatIsWrongIsNotRepeatedWhole) {
  const std::string digits(1 << 20, '9'), open = "\"" + digits;
  for (const std::string& text : {digits, "[-" + digits + "]", open}) {
    const auto value = ParseStrictJson(text, "f.json");
    EXPECT_FALSE(value.ok());
    EXPECT_LT(value.status().message().size(), 250);
  }
}

TEST(StrictJson, AFilesObjectMayBeAbsentButNothingElse) {
  const std::string path = ::testing::TempDir() + "object.json";
  const auto read = [&path](const char* text) {
    std::ofstream(path) << text;
    return ReadStrictJsonObject(path);
  };
  std::filesystem::remove(path);
  EXPECT_EQ(ReadStrictJsonObject(path).value(), json::object());
  EXPECT_EQ(read(R"({"a": 1})").value(), json({{"a", 1}}));
  EXPECT_THAT(std::string(read("[]").status().message()),
              HasSubstr("object.json holds no JSON object."));
  EXPECT_FALSE(read("{").ok());
}

TEST(StrictJson, TakesNestingUpToTheLimit) {
  const std::string text = std::string(32, '[') + std::string(32, ']');
  EXPECT_TRUE(ParseStrictJson(text, "f.json").ok());
}

}  // namespace
}  // namespace lockstep
