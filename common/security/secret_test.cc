#include "common/security/secret.h"

#include <gtest/gtest.h>

#include <concepts>
#include <string>

namespace lockstep {
namespace {

// So that no code can compare two in another way than Matches.
static_assert(!std::equality_comparable<SecretDigest>);

TEST(SecretDigest, MatchesItsSecretAlone) {
  const SecretDigest known = SecretDigest::Of("correct horse");
  EXPECT_TRUE(known.Matches(SecretDigest::Of("correct horse")));
  EXPECT_FALSE(known.Matches(SecretDigest::Of("correct horsf")));
  EXPECT_FALSE(known.Matches(SecretDigest::Of("")));
}

TEST(SecretDigest, IsWhatSha256sumPrints) {
  // printf abc | sha256sum
  const auto digest = SecretDigest::FromHex(
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015AD");
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_TRUE(digest->Matches(SecretDigest::Of("abc")));
}

TEST(SecretDigest, ADigitTooFewOrNoDigitIsRefused) {
  for (const std::string& hex :
       {std::string(), std::string(63, 'a'), std::string(65, 'a'),
        std::string(63, 'a') + "g"}) {
    EXPECT_EQ(SecretDigest::FromHex(hex).status().code(),
              absl::StatusCode::kInvalidArgument)
        << hex;
  }
}

}  // namespace
}  // namespace lockstep
