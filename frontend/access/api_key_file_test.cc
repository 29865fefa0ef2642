#include "frontend/access/api_key_file.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

constexpr char kKey[] = "5f0c9a3e71d24b86";

TEST(ApiKeyFile, AKeyALineWithLimits) {
  const auto keys = ParseApiKeys(
      "# who may ask\n"
      "\n"
      "alice  5f0c9a3e71d24b86\n"
      "batch\tabcdefghijklmnop concurrent_requests=4 priority_floor=-5 "
      "requests_per_minute=60\ttokens_per_minute=100000  # at night\r\n"
      // printf abcdefghijklmnoq | sha256sum
      "hashed sha256:"
      "04c304e77f1a1cfcca477ad939e794823eb68c535e6c8fb9b421795dd79b0dd3 "
      "may_drain");
  ASSERT_TRUE(keys.ok()) << keys.status();
  ASSERT_EQ(keys->size(), 3);
  EXPECT_EQ((*keys)[0].name, "alice");
  EXPECT_TRUE((*keys)[0].digest.Matches(SecretDigest::Of(kKey)));
  EXPECT_EQ((*keys)[0].limits.concurrent_requests, 0);
  EXPECT_EQ((*keys)[0].limits.priority_floor, INT32_MIN);
  const KeyLimits& limits = (*keys)[1].limits;
  EXPECT_EQ(limits.concurrent_requests, 4);
  EXPECT_EQ(limits.requests_per_minute, 60);
  EXPECT_EQ(limits.tokens_per_minute, 100'000);
  EXPECT_EQ(limits.priority_floor, -5);
  EXPECT_FALSE((*keys)[1].may_drain);
  EXPECT_TRUE((*keys)[2].may_drain);
  EXPECT_EQ((*keys)[2].name, "hashed");
  EXPECT_TRUE((*keys)[2].digest.Matches(SecretDigest::Of("abcdefghijklmnoq")));
}

TEST(ApiKeyFile, WhatIsWrongIsSaidWithItsLineAndWithoutTheKey) {
  const struct {
    std::string line;
    std::string why;
  } kCases[] = {
      {"alice", "it must have a name and a key"},
      {"al/ice 5f0c9a3e71d24b86",
       "the name must be 1 to 128 characters of [A-Za-z0-9._-]"},
      {"alice short", "the key has 5 characters; it must have 16 to 512"},
      {"alice 5f0c9a3e71d24b8ü",
       "the key has a character outside [A-Za-z0-9._~+/=-]"},
      {"alice sha256:5f0c9a3e71d24b86",
       "a SHA-256 has 64 hexadecimal digits, not 16 characters"},
      {"alice 5f0c9a3e71d24b86 rpm=1",
       "what follows the key must be concurrent_requests=N, "
       "requests_per_minute=N, tokens_per_minute=N, priority_floor=N or "
       "may_drain"},
      {"alice 5f0c9a3e71d24b86 requests_per_minute=0",
       "requests_per_minute must be 1 to 1000000000000"},
      {"alice 5f0c9a3e71d24b86 priority_floor=101",
       "priority_floor must be -100 to 100"},
      {"first abcdefghijklmnop", "the name is there twice"},
      {"other aaaaaaaaaaaaaaaa", "the key is there twice"},
  };
  for (const auto& c : kCases) {
    const auto keys =
        ParseApiKeys(absl::StrCat("first aaaaaaaaaaaaaaaa\n\n", c.line, "\n"));
    EXPECT_EQ(keys.status(), absl::InvalidArgumentError(absl::StrCat(
                                 "line 3 of --api_keys_file: ", c.why, ".")));
    EXPECT_FALSE(absl::StrContains(keys.status().message(), kKey));
  }
}

TEST(ApiKeyFile, AFileWithoutAKeyIsRefused) {
  for (const char* text : {"", "\n", "# alice 5f0c9a3e71d24b86\n"}) {
    EXPECT_EQ(ParseApiKeys(text).status(),
              absl::InvalidArgumentError(
                  "--api_keys_file holds no key; with none nobody could ask "
                  "anything."));
  }
}

TEST(ApiKeyFile, TooManyKeysAreRefused) {
  std::string text;
  for (size_t i = 0; i <= kMostApiKeys; ++i) {
    absl::StrAppend(&text, "k", i, " abcdefghijklmnop", i, "\n");
  }
  EXPECT_EQ(ParseApiKeys(text).status(),
            absl::InvalidArgumentError("line 4097 of --api_keys_file: there "
                                       "are more than 4096 keys."));
}

}  // namespace
}  // namespace lockstep
