#include "tokenizer_service/incremental_decoder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

using Ids = std::vector<uint32_t>;
using Join = Vocabulary::Join;
using Kind = Vocabulary::Kind;

// What each id adds, then what the end adds.
std::vector<std::string> Pieces(const Vocabulary& vocabulary, const Ids& ids,
                                bool skip_special_tokens = false) {
  IncrementalDecoder decoder(&vocabulary, skip_special_tokens);
  std::vector<std::string> pieces;
  for (const uint32_t id : ids) pieces.push_back(*decoder.Add({id}));
  pieces.push_back(*decoder.Finish());
  return pieces;
}

using Strings = std::vector<std::string>;

Vocabulary ByteLevel() {
  Vocabulary vocabulary(Join::kByteLevel);
  vocabulary.Add("hi", Kind::kText);           // 0
  vocabulary.Add("\xe2\x82", Kind::kText);     // 1
  vocabulary.Add("\xac!", Kind::kText);        // 2
  vocabulary.Add("\xff", Kind::kText);         // 3
  vocabulary.Add("<end>", Kind::kText, true);  // 4
  vocabulary.Add("", Kind::kNone);             // 5
  return vocabulary;
}

TEST(IncrementalDecoder, HoldsHalfACharacterBack) {
  const Vocabulary vocabulary = ByteLevel();
  EXPECT_EQ(Pieces(vocabulary, {0, 1, 2}), (Strings{"hi", "", "€!", ""}));
  EXPECT_EQ(Pieces(vocabulary, {0, 1}), (Strings{"hi", "", "\uFFFD"}));
  EXPECT_EQ(Pieces(vocabulary, {1, 0}), (Strings{"", "\uFFFDhi", ""}));
}

TEST(IncrementalDecoder, BytesThatNothingCompletesGoOutAtOnce) {
  EXPECT_EQ(Pieces(ByteLevel(), {3, 3, 2}),
            (Strings{"\uFFFD", "\uFFFD", "\uFFFD!", ""}));
}

TEST(IncrementalDecoder, SkippedTokensAndEmptyIdsSplitNoCharacter) {
  const Vocabulary vocabulary = ByteLevel();
  EXPECT_EQ(Pieces(vocabulary, {1, 4, 5, 2}, true),
            (Strings{"", "", "", "€!", ""}));
  EXPECT_EQ(Pieces(vocabulary, {1, 5, 4, 2}, false),
            (Strings{"", "", "\uFFFD<end>", "\uFFFD!", ""}));
}

TEST(IncrementalDecoder, NamesTheIdOutsideTheVocabulary) {
  const Vocabulary vocabulary = ByteLevel();
  IncrementalDecoder decoder(&vocabulary, false);
  EXPECT_EQ(decoder.Add({0, 6}).status(),
            absl::InvalidArgumentError(
                "token_ids[1] is 6, outside the vocabulary of 6 ids."));
  EXPECT_EQ(*decoder.Add({0}), "hi");
}

Vocabulary ByteFallback() {
  Vocabulary vocabulary(Join::kByteFallback, /*strip_leading_spaces=*/2);
  vocabulary.Add(" a", Kind::kText);           // 0
  vocabulary.Add(" ", Kind::kText);            // 1
  vocabulary.Add("\xc3", Kind::kByte);         // 2
  vocabulary.Add("\xa9", Kind::kByte);         // 3
  vocabulary.Add(" ", Kind::kByte);            // 4
  vocabulary.Add("<end>", Kind::kText, true);  // 5
  vocabulary.Add("", Kind::kNone);             // 6
  return vocabulary;
}

TEST(IncrementalDecoder, ARunOfByteTokensIsTextOrNotAsAWhole) {
  const Vocabulary vocabulary = ByteFallback();
  EXPECT_EQ(Pieces(vocabulary, {2, 3, 0}), (Strings{"", "", "é a", ""}));
  // The run's last byte spoils what would have been a character.
  EXPECT_EQ(Pieces(vocabulary, {2, 3, 3, 0}),
            (Strings{"", "", "", "\uFFFD\uFFFD\uFFFD a", ""}));
  EXPECT_EQ(Pieces(vocabulary, {2, 3}), (Strings{"", "", "é"}));
  EXPECT_EQ(Pieces(vocabulary, {2, 6, 3}), (Strings{"", "", "", "é"}));
}

TEST(IncrementalDecoder, ASpecialTokenEndsARunUnlessItIsSkipped) {
  const Vocabulary vocabulary = ByteFallback();
  EXPECT_EQ(Pieces(vocabulary, {2, 5, 3}, true), (Strings{"", "", "", "é"}));
  EXPECT_EQ(Pieces(vocabulary, {2, 5, 3}, false),
            (Strings{"", "\uFFFD<end>", "", "\uFFFD"}));
}

TEST(IncrementalDecoder, DropsSpacesAtTheVeryStartOnly) {
  const Vocabulary vocabulary = ByteFallback();
  EXPECT_EQ(Pieces(vocabulary, {0, 0}), (Strings{"a", " a", ""}));
  EXPECT_EQ(Pieces(vocabulary, {1, 0, 0}), (Strings{"", "a", " a", ""}));
  EXPECT_EQ(Pieces(vocabulary, {1, 1, 1}), (Strings{"", "", " ", ""}));
  EXPECT_EQ(Pieces(vocabulary, {4, 4, 4, 0}), (Strings{"", "", "", "  a", ""}));
  EXPECT_EQ(Pieces(vocabulary, {5, 0}, true), (Strings{"", "a", ""}));
}

TEST(IncrementalDecoder, WorkDoesNotGrowWithTheStream) {
  // A hundred thousand ids, one at a time: quadratic work would take minutes.
  const Vocabulary vocabulary = ByteLevel();
  IncrementalDecoder decoder(&vocabulary, false);
  size_t size = 0;
  for (int i = 0; i < 100'000; ++i) size += decoder.Add({3})->size();
  EXPECT_EQ(size, 300'000);
}

}  // namespace
}  // namespace lockstep
