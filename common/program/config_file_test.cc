#include "common/program/config_file.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

Entries Parse(absl::string_view text) {
  const auto parsed = ParseConfig(text, "file");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  Entries entries;
  for (const ConfigEntry& entry : *parsed) {
    entries.emplace_back(entry.name, entry.value);
  }
  return entries;
}

TEST(ConfigFileTest, IsNamesAndValues) {
  EXPECT_EQ(Parse("# A gateway.\n"
                  "model: /models/a b\n"
                  "\n"
                  "  # indented\n"
                  "workers:10.0.0.1:50052\r\n"
                  "http_listen:\n"
                  "health_listen: \"\"\n"
                  "max_retries: 2   # of a request\n"
                  "access_log: \"-\" # here\n"
                  "routing_policy: # none\n"
                  "tag: a#b \"c\""),
            (Entries{{"model", "/models/a b"},
                     {"workers", "10.0.0.1:50052"},
                     {"http_listen", ""},
                     {"health_listen", ""},
                     {"max_retries", "2"},
                     {"access_log", "-"},
                     {"routing_policy", ""},
                     {"tag", "a#b \"c\""}}));
  EXPECT_EQ(Parse(""), Entries());
}

TEST(ConfigFileTest, ALineThatIsNoneIsNamedByItsNumber) {
  const struct {
    const char* text;
    const char* error;
  } kCases[] = {
      {"a: 1\nb\n", "etc/a.yaml:2: this is no \"name: value\"."},
      {"- a: 1", "etc/a.yaml:1: this is no \"name: value\"."},
      {" a: 1", "etc/a.yaml:1: this is no \"name: value\"."},
      {"--a=1", "etc/a.yaml:1: this is no \"name: value\"."},
      {": 1", "etc/a.yaml:1: this is no \"name: value\"."},
      {"a: \"1", "etc/a.yaml:1: the value has no closing quote."},
      {"a: \"1\" 2", "etc/a.yaml:1: something follows the closing quote."},
      {"a: 1\n\na: 2", "etc/a.yaml:3: a is set already, by line 1."},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ParseConfig(c.text, "etc/a.yaml").status(),
              absl::InvalidArgumentError(c.error))
        << c.text;
  }
  EXPECT_FALSE(ParseConfig(absl::string_view("a: \0", 4), "file").ok());
}

TEST(ConfigFileTest, WhatIsFormattedIsReadBack) {
  for (const std::string& value :
       {std::string("plain"), std::string(), std::string(" spaced "),
        std::string("# no comment"), std::string("a #b"),
        std::string("a#b:c")}) {
    EXPECT_EQ(Parse(FormatConfigLine("name", value)),
              (Entries{{"name", value}}));
  }
  EXPECT_EQ(FormatConfigLine("name", "plain"), "name: plain");
}

}  // namespace
}  // namespace lockstep
