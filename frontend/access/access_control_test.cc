#include "frontend/access/access_control.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/error_reason.h"

namespace lockstep {
namespace {

ApiKey Key(const std::string& name, const std::string& key,
           const KeyLimits& limits = {}) {
  return {name, SecretDigest::Of(key), limits};
}

class AccessControlTest : public ::testing::Test {
 protected:
  // Enters, or says why not.
  absl::StatusOr<std::shared_ptr<AccessGrant>> Enter(const std::string& key) {
    return access_.Enter("Bearer " + key);
  }

  absl::Time now_ = absl::UnixEpoch();
  AccessControl access_{[this] { return now_; }};
};

TEST_F(AccessControlTest, WithoutKeysEverybodyMayAsk) {
  EXPECT_TRUE(access_.Check("").ok());
  EXPECT_EQ(*access_.Enter("Bearer anything"), nullptr);
}

TEST_F(AccessControlTest, WithKeysOneOfThemIsNeeded) {
  access_.SetKeys({Key("alice", "wonderland"), Key("bob", "builder")});
  EXPECT_EQ((*Enter("wonderland"))->key_name(), "alice");
  EXPECT_EQ((*Enter("builder"))->key_name(), "bob");
  for (const char* as_sent :
       {"bearer wonderland", "BEARER  wonderland", "Bearer wonderland "}) {
    EXPECT_TRUE(access_.Check(as_sent).ok()) << as_sent;
  }
}

TEST_F(AccessControlTest, OnlyAKeyThatMayDrains) {
  const auto code = [this](const char* authorization) {
    return access_.CheckMayDrain(authorization).code();
  };
  // Where nobody is known, nobody may.
  EXPECT_EQ(code(""), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code("Bearer anything"), absl::StatusCode::kPermissionDenied);
  ApiKey operating = Key("ops", "operator");
  operating.may_drain = true;
  access_.SetKeys({Key("alice", "wonderland"), operating});
  EXPECT_EQ(code("Bearer operator"), absl::StatusCode::kOk);
  EXPECT_EQ(code("Bearer wonderland"), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code("Bearer other"), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code(""), absl::StatusCode::kUnauthenticated);
  // As of any key, it is taken back with the file.
  access_.SetKeys({Key("ops", "operator")});
  EXPECT_EQ(code("Bearer operator"), absl::StatusCode::kPermissionDenied);
}

TEST_F(AccessControlTest, RefusalsAreCounted) {
  access_.SetKeys({Key("alice", "wonderland")});
  EXPECT_TRUE(access_.Check("Bearer wonderland").ok());
  EXPECT_FALSE(access_.Check("").ok());
  EXPECT_FALSE(access_.Enter("Basic wonderland").ok());
  EXPECT_FALSE(access_.Enter("Bearer wonderlane").ok());
  EXPECT_EQ(access_.without_key(), 2);
  EXPECT_EQ(access_.with_unknown_key(), 1);
}

TEST_F(AccessControlTest, ARefusalTellsNothingOfTheKeys) {
  access_.SetKeys({Key("alice", "wonderland")});
  const absl::Status none = access_.Check("");
  EXPECT_EQ(none.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(none.message(),
            "an API key is needed; send it as \"Authorization: Bearer KEY\".");
  EXPECT_EQ(ErrorReasonOf(none), "INVALID_API_KEY");
  for (const char* as_sent : {"Bearer", "Bearer ", "Basic wonderland",
                              "wonderland", "Bearerwonderland"}) {
    EXPECT_EQ(access_.Check(as_sent), none) << as_sent;
  }
  for (const char* as_sent : {"Bearer wonderlane", "Bearer wonderland2",
                              "Bearer alice", "Bearer wonder land"}) {
    EXPECT_EQ(access_.Check(as_sent).message(), "the API key is not valid.")
        << as_sent;
    EXPECT_EQ(access_.Enter(as_sent).status(), access_.Check(as_sent));
  }
}

TEST_F(AccessControlTest, RunningRequestsAreCountedUntilTheyEnd) {
  access_.SetKeys(
      {Key("alice", "key", {.concurrent_requests = 2}), Key("bob", "other")});
  auto first = Enter("key");
  const auto second = Enter("key");
  ASSERT_TRUE(first.ok() && second.ok());
  const absl::Status full = Enter("key").status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(),
            "the API key of alice has 2 requests running, its limit of "
            "concurrent_requests; try again in 1 s.");
  EXPECT_EQ(ErrorReasonOf(full), "KEY_LIMIT");
  EXPECT_EQ(RetryDelayOf(full), absl::Seconds(1));
  EXPECT_TRUE(Enter("other").ok());
  EXPECT_TRUE(access_.Check("Bearer key").ok());
  first->reset();
  EXPECT_TRUE(Enter("key").ok());
}

TEST_F(AccessControlTest, RequestsOfAMinute) {
  access_.SetKeys({Key("alice", "key", {.requests_per_minute = 2})});
  EXPECT_TRUE(Enter("key").ok());
  EXPECT_TRUE(Enter("key").ok());
  const absl::Status status = Enter("key").status();
  EXPECT_EQ(status.message(),
            "the API key of alice has used up its 2 requests_per_minute; try "
            "again in 30 s.");
  EXPECT_EQ(RetryDelayOf(status), absl::Seconds(30));
  now_ += absl::Seconds(30);
  EXPECT_TRUE(Enter("key").ok());
  EXPECT_FALSE(Enter("key").ok());
}

TEST_F(AccessControlTest, TokensAreSpentAsTheyBecomeKnown) {
  access_.SetKeys({Key("alice", "key", {.tokens_per_minute = 600})});
  const auto grant = Enter("key");
  ASSERT_TRUE(grant.ok());
  (*grant)->SpendTokens(500);
  EXPECT_TRUE(Enter("key").ok());
  (*grant)->SpendTokens(400);
  const absl::Status status = Enter("key").status();
  EXPECT_EQ(status.message(),
            "the API key of alice has used up its 600 tokens_per_minute; try "
            "again in 31 s.");
  now_ += *RetryDelayOf(status);
  EXPECT_TRUE(Enter("key").ok());
}

TEST_F(AccessControlTest, NewKeysTakeThePlaceOfTheOldAtOnce) {
  access_.SetKeys({Key("alice", "old"), Key("bob", "stays")});
  const auto running = Enter("old");
  access_.SetKeys({Key("bob", "stays"), Key("carol", "new")});
  EXPECT_FALSE(Enter("old").ok());
  EXPECT_TRUE(Enter("stays").ok());
  EXPECT_TRUE(Enter("new").ok());
  EXPECT_EQ((*running)->key_name(), "alice");  // ends as it would have
}

TEST_F(AccessControlTest, ANameThatStaysKeepsWhatItHasInUse) {
  const KeyLimits one = {.concurrent_requests = 1};
  access_.SetKeys({Key("alice", "old", one)});
  auto running = Enter("old");
  access_.SetKeys({Key("alice", "new", one)});
  EXPECT_FALSE(Enter("new").ok());
  running->reset();
  EXPECT_TRUE(Enter("new").ok());
  access_.SetKeys({Key("alice", "new", {.concurrent_requests = 2})});
  const auto first = Enter("new");
  EXPECT_TRUE(Enter("new").ok());
}

TEST_F(AccessControlTest, GrantsOutliveIt) {
  std::shared_ptr<AccessGrant> grant;
  {
    AccessControl access;
    access.SetKeys({Key("alice", "key", {.priority_floor = 3})});
    grant = *access.Enter("Bearer key");
  }
  grant->SpendTokens(1);
  EXPECT_EQ(grant->priority_floor(), 3);
}

}  // namespace
}  // namespace lockstep
