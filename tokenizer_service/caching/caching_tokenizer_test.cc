#include "tokenizer_service/caching/caching_tokenizer.h"

#include <absl/strings/string_view.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "tests/testing/fake_tokenizer.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Ids = std::vector<uint32_t>;
// Changes what is encoded of a text.
using Quirk = std::function<void(absl::string_view text, Ids* ids)>;

// FakeTokenizer with a template that writes all of its special tokens, and one
// more token.
class QuirkyTokenizer : public FakeTokenizer {
 public:
  explicit QuirkyTokenizer(Quirk quirk = nullptr,
                           absl::string_view one_more = "more")
      : quirk_(std::move(quirk)),
        info_(FakeTokenizer::info()),
        vocabulary_(FakeTokenizer::vocabulary()) {
    info_.chat_template = "<bos>{{ messages }}<eos><tool>";
    vocabulary_.Add(one_more, Vocabulary::Kind::kText);
  }

  absl::StatusOr<Ids> Encode(absl::string_view text,
                             bool add_special_tokens) const override {
    LOCKSTEP_ASSIGN_OR_RETURN(Ids ids,
                              FakeTokenizer::Encode(text, add_special_tokens));
    if (quirk_ != nullptr) quirk_(text, &ids);
    encoded_bytes += text.size();
    return ids;
  }
  const TokenizerInfo& info() const override { return info_; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }

  mutable std::atomic<size_t> encoded_bytes = 0;

 private:
  const Quirk quirk_;
  TokenizerInfo info_;
  Vocabulary vocabulary_;
};

// A space behind one of the tokens is its own.
void TakeSpaceBehindEos(absl::string_view /*text*/, Ids* ids) {
  for (size_t i = 0; i + 1 < ids->size(); ++i) {
    if ((*ids)[i] == FakeTokenizer::kEos && (*ids)[i + 1] == ' ') {
      ids->erase(ids->begin() + i + 1);
    }
  }
}

// As SentencePiece does it: a text begins with a space.
void AddSpaceInFront(absl::string_view text, Ids* ids) {
  if (!text.empty() && ids->front() < FakeTokenizer::kBos) {
    ids->insert(ids->begin(), ' ');
  }
}

// Looks for the token "y<e" before it looks for "<eos>", of which "os>" is left
// then; and ">x" is one token.
void ReadYBeforeEos(absl::string_view /*text*/, Ids* ids) {
  for (size_t i = 0; i + 1 < ids->size(); ++i) {
    if ((*ids)[i] != 'y' || (*ids)[i + 1] != FakeTokenizer::kEos) continue;
    ids->erase(ids->begin() + i + 1);
    ids->insert(ids->begin() + i + 1, {'o', 's', '>'});
  }
  for (size_t i = 0; i + 1 < ids->size(); ++i) {
    if ((*ids)[i] == '>' && (*ids)[i + 1] == 'x') ids->erase(ids->begin() + i);
  }
}

TEST(TextCuts, AreBehindTheTokensThatTheTemplateWrites) {
  const TextCuts cuts{QuirkyTokenizer()};
  EXPECT_THAT(cuts.tokens(), ElementsAre("<bos>", "<eos>", "<tool>"));
  EXPECT_THAT(cuts.Split("<bos>a<eos><eos>b<to"),
              ElementsAre("<bos>", "a<eos>", "<eos>", "b<to"));
  EXPECT_THAT(cuts.Split("<<eos>"), ElementsAre("<<eos>"));
  EXPECT_THAT(cuts.Split(""), IsEmpty());
}

TEST(TextCuts, WithoutATemplateThereAreNone) {
  EXPECT_THAT(TextCuts(FakeTokenizer(/*has_chat_template=*/false)).tokens(),
              IsEmpty());
}

TEST(TextCuts, ATokenThatTakesSpacesAlongIsNone) {
  EXPECT_THAT(TextCuts(QuirkyTokenizer(TakeSpaceBehindEos)).tokens(),
              ElementsAre("<bos>", "<tool>"));
}

TEST(TextCuts, WhereTheBeginningOfATextIsSpecialThereAreNone) {
  EXPECT_THAT(TextCuts(QuirkyTokenizer(AddSpaceInFront)).tokens(), IsEmpty());
}

TEST(TextCuts, ATokenThatAnotherMayTakeIsNone) {
  EXPECT_THAT(TextCuts(QuirkyTokenizer(ReadYBeforeEos, "y<e")).tokens(),
              ElementsAre("<bos>", "<tool>"));
}

TEST(TextCuts, ATokenThatIsAPartOfAnotherIsNone) {
  EXPECT_THAT(TextCuts(QuirkyTokenizer(nullptr, "a<tool>s")).tokens(),
              ElementsAre("<bos>", "<eos>"));
}

class CachingTokenizerTest : public ::testing::Test {
 protected:
  CachingTokenizerTest() {
    auto inner = std::make_unique<QuirkyTokenizer>();
    inner_ = inner.get();
    tokenizer_ = std::make_unique<CachingTokenizer>(std::move(inner), 1 << 20);
  }

  // What the other tokenizer was given of it.
  size_t BytesEncodedFor(const std::string& text) {
    const size_t before = inner_->encoded_bytes;
    EXPECT_EQ(*tokenizer_->Encode(text, false),
              *FakeTokenizer().Encode(text, false));
    return inner_->encoded_bytes - before;
  }

  const QuirkyTokenizer* inner_;
  std::unique_ptr<CachingTokenizer> tokenizer_;
};

TEST_F(CachingTokenizerTest, OfAChatThatGoesOnTheNewTurnsAreEncoded) {
  const std::string asked = "<bos>be brief<eos>how much?<eos>";
  const std::string told = asked + "much<eos>";
  EXPECT_EQ(BytesEncodedFor(asked), asked.size());
  EXPECT_EQ(BytesEncodedFor(told), told.size() - asked.size());
  EXPECT_EQ(BytesEncodedFor(told + "why?"), 4);
  EXPECT_EQ(BytesEncodedFor(told + "why?"), 0);
  // Another chat with the same first turn.
  EXPECT_EQ(BytesEncodedFor("<bos>be brief<eos>when?<eos>"), 10);
  EXPECT_EQ(tokenizer_->encoded_bytes(),
            asked.size() + told.size() - asked.size() + 4 + 10);
  EXPECT_GT(tokenizer_->known_bytes(), 0);
}

TEST_F(CachingTokenizerTest, WhatGetsSpecialTokensIsLeftToTheOther) {
  for (int i = 0; i < 2; ++i) {
    const size_t before = inner_->encoded_bytes;
    EXPECT_THAT(*tokenizer_->Encode("a<eos>", true),
                ElementsAre(FakeTokenizer::kBos, 'a', FakeTokenizer::kEos));
    EXPECT_EQ(inner_->encoded_bytes - before, 6);
  }
}

TEST_F(CachingTokenizerTest, ErrorsAreTheOthersAndAreNotKept) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(tokenizer_->Encode("<bos>\xff<eos>", false).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(CachingTokenizerTest, IdsAreThoseOfTheOtherWhateverTheText) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::string kPieces[] = {"<bos>", "<eos>", "<tool>", "<",  "x", " ",
                                 "eos>",  "<eo",   "é",      "\n", "hi"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (uint32_t left = random() % 12; left > 0; --left) {
      text += kPieces[random() % std::size(kPieces)];
    }
    SCOPED_TRACE(text);
    BytesEncodedFor(text);
  }
}

}  // namespace
}  // namespace lockstep
