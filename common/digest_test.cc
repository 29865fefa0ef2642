#include "common/digest.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

TEST(Digest, IsTheStartOfSha256) {
  // SHA-256 of the empty string.
  EXPECT_EQ(ToHex(DigestBuilder().Finish()),
            "e3b0c44298fc1c149afbf4c8996fb924");
}

TEST(Digest, TellsWhereOneValueEndsAndTheNextBegins) {
  DigestBuilder one, two;
  one.Add(std::vector<uint32_t>{1, 2});
  one.Add(std::vector<uint32_t>{3});
  two.Add(std::vector<uint32_t>{1});
  two.Add(std::vector<uint32_t>{2, 3});
  EXPECT_NE(one.Finish(), two.Finish());
}

TEST(Digest, StartsAnewAfterFinish) {
  DigestBuilder builder;
  builder.Add("text");
  const Digest first = builder.Finish();
  builder.Add("text");
  EXPECT_EQ(builder.Finish(), first);
}

}  // namespace
}  // namespace lockstep
