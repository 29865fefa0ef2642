#include "frontend/generation/text_stream.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/testing/fake_tokenizer.h"

namespace lockstep {
namespace {

using Ids = std::vector<uint32_t>;

Ids Bytes(const std::string& text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

class TextStreamTest : public testing::Test {
 protected:
  TextStream Make(std::vector<std::string> stop = {}) {
    GenerateSpec spec;
    spec.stop = std::move(stop);
    spec.skip_special_tokens = skip_special_tokens_;
    return TextStream(&tokenizer_, spec);
  }

  FakeTokenizer tokenizer_;
  bool skip_special_tokens_ = true;
};

TEST_F(TextStreamTest, EmitsWholeCharactersOnly) {
  TextStream stream = Make();
  const std::string face = "😀";
  for (size_t i = 0; i + 1 < face.size(); ++i) {
    EXPECT_EQ(stream.Add(Bytes(face.substr(i, 1)))->text, "");
  }
  EXPECT_EQ(stream.Add(Bytes(face.substr(3)))->text, face);
  EXPECT_EQ(stream.num_tokens(), 4);
  EXPECT_EQ(*stream.Finish(), "");
}

TEST_F(TextStreamTest, HalfACharacterAtTheEndIsReplaced) {
  TextStream stream = Make();
  EXPECT_EQ(stream.Add(Bytes("ok\xe2\x82"))->text, "ok");
  EXPECT_EQ(*stream.Finish(), "\xef\xbf\xbd");
}

TEST_F(TextStreamTest, CountsTheTokensUpToTheStopString) {
  TextStream stream = Make({"STOP"});
  EXPECT_EQ(stream.Add(Bytes("go ST"))->text, "go ");
  const TextStream::Piece piece = *stream.Add(Bytes("OP and more"));
  EXPECT_EQ(piece.text, "");
  EXPECT_EQ(piece.num_tokens, 2);
  EXPECT_EQ(stream.stop_string(), "STOP");
  EXPECT_EQ(stream.num_tokens(), 7);
  EXPECT_EQ(stream.Add(Bytes("more"))->num_tokens, 0);
  EXPECT_EQ(*stream.Finish(), "");
}

TEST_F(TextStreamTest, AStopStringCanEndInWhatWasHeldBack) {
  TextStream stream = Make({"ab", "abc"});
  EXPECT_EQ(stream.Add(Bytes("xab"))->text, "x");
  EXPECT_FALSE(stream.stop_string().has_value());
  EXPECT_EQ(*stream.Finish(), "");
  EXPECT_EQ(stream.stop_string(), "ab");
}

TEST_F(TextStreamTest, SpecialTokensShowOnlyWhenAsked) {
  const Ids ids = {'a', FakeTokenizer::kTool, 'b'};
  EXPECT_EQ(Make().Add(ids)->text, "ab");
  skip_special_tokens_ = false;
  EXPECT_EQ(Make().Add(ids)->text, "a<tool>b");
  EXPECT_EQ(Make({"<tool>"}).Add(ids)->num_tokens, 2);
}

TEST_F(TextStreamTest, AnIdThatOnlyPadsTheVocabularyHasNoText) {
  const TextStream::Piece piece =
      *Make().Add({'a', FakeTokenizer::kVocabularySize, 'b', 5000});
  EXPECT_EQ(piece.text, "ab");
  EXPECT_EQ(piece.num_tokens, 4);
}

TEST_F(TextStreamTest, AnyCutOfTheIdsGivesTheSame) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  const std::string text = "un café, s'il vous plaît 😀, dit-elle. FIN du café";
  const Ids ids = Bytes(text);
  for (int round = 0; round < 500; ++round) {
    TextStream stream = Make({"FIN", "FINAL", "é 😀"});
    std::string shown;
    for (size_t at = 0; at < ids.size();) {
      const size_t size = std::min<size_t>(random() % 6, ids.size() - at);
      shown += stream.Add(absl::MakeConstSpan(ids).subspan(at, size))->text;
      at += size;
    }
    shown += *stream.Finish();
    ASSERT_EQ(shown, text.substr(0, text.find("FIN"))) << "seed " << seed;
    // "FIN " rules out "FINAL" and so is what ends the text.
    ASSERT_EQ(stream.num_tokens(), text.find("FIN") + 4) << "seed " << seed;
  }
}

}  // namespace
}  // namespace lockstep
