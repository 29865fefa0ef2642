#include "tokenizer_service/vocabulary.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Vocabulary, GivesBackWhatWasAdded) {
  Vocabulary vocabulary(Vocabulary::Join::kByteFallback, 1);
  vocabulary.Add("<s>", Vocabulary::Kind::kText, /*special=*/true);
  vocabulary.Add("", Vocabulary::Kind::kNone);
  vocabulary.Add("\xff", Vocabulary::Kind::kByte);
  EXPECT_EQ(vocabulary.size(), 3);
  EXPECT_EQ(vocabulary.token(0).bytes, "<s>");
  EXPECT_TRUE(vocabulary.token(0).special);
  EXPECT_EQ(vocabulary.token(1).bytes, "");
  EXPECT_EQ(vocabulary.token(1).kind, Vocabulary::Kind::kNone);
  EXPECT_EQ(vocabulary.token(2).bytes, "\xff");
  EXPECT_FALSE(vocabulary.token(2).special);
  EXPECT_EQ(vocabulary.strip_leading_spaces(), 1);
}

TEST(Vocabulary, AnyDifferenceShowsInItsDigest) {
  using Kind = Vocabulary::Kind;
  using Join = Vocabulary::Join;
  const auto digest_of = [](Vocabulary vocabulary, const char* first,
                            const char* second, Kind kind, bool special) {
    vocabulary.Add(first, Kind::kText);
    vocabulary.Add(second, kind, special);
    return vocabulary.MakeDigest();
  };
  const Vocabulary base(Join::kByteFallback, 1);
  const Digest digest = digest_of(base, "ab", "c", Kind::kText, false);
  EXPECT_EQ(digest_of(base, "ab", "c", Kind::kText, false), digest);
  EXPECT_NE(digest_of(base, "a", "bc", Kind::kText, false), digest);
  EXPECT_NE(digest_of(base, "ab", "d", Kind::kText, false), digest);
  EXPECT_NE(digest_of(base, "ab", "c", Kind::kByte, false), digest);
  EXPECT_NE(digest_of(base, "ab", "c", Kind::kText, true), digest);
  EXPECT_NE(digest_of(Vocabulary(Join::kByteFallback, 0), "ab", "c",
                      Kind::kText, false),
            digest);
  EXPECT_NE(
      digest_of(Vocabulary(Join::kByteLevel, 1), "ab", "c", Kind::kText, false),
      digest);
}

TEST(Vocabulary, NamesTheIdThatIsOutside) {
  Vocabulary vocabulary(Vocabulary::Join::kByteLevel);
  EXPECT_TRUE(vocabulary.Check({}).ok());
  vocabulary.Add("a", Vocabulary::Kind::kText);
  EXPECT_TRUE(vocabulary.Check({0, 0}).ok());
  EXPECT_EQ(vocabulary.Check({0, 0, 1}),
            absl::InvalidArgumentError(
                "token_ids[2] is 1, outside the vocabulary of 1 ids."));
}

}  // namespace
}  // namespace lockstep
