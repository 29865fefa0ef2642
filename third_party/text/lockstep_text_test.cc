#include "third_party/text/lockstep_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

const uint8_t* Data(const std::string& text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

// Takes the text and frees the bytes.
std::string Take(LtBytes& bytes) {
  std::string text(reinterpret_cast<const char*>(bytes.data), bytes.size);
  lt_bytes_free(&bytes);
  return text;
}

std::string SmallTokenizer() {
  std::ifstream file("tests/goldens/tokenizers/small/tokenizer.json");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class Door : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string json = SmallTokenizer();
    ASSERT_EQ(lt_tokenizer_new(Data(json), json.size(), &tokenizer_, &error_),
              LT_OK)
        << Take(error_);
  }

  void TearDown() override {
    lt_tokenizer_free(tokenizer_);
    lt_bytes_free(&error_);
  }

  LtTokenizer* tokenizer_ = nullptr;
  LtBytes error_ = {};
};

TEST_F(Door, APanicStaysInside) {
  EXPECT_EQ(lt_panic(&error_), LT_PANIC);
  EXPECT_EQ(Take(error_), "on purpose");
  EXPECT_EQ(lt_panic(nullptr), LT_PANIC);
}

TEST_F(Door, AnErrorIsASentence) {
  LtTokenizer* tokenizer = nullptr;
  EXPECT_EQ(lt_tokenizer_new(Data("{"), 1, &tokenizer, &error_), LT_INVALID);
  EXPECT_EQ(tokenizer, nullptr);
  EXPECT_NE(Take(error_), "");
  EXPECT_EQ(error_.data, nullptr);
}

// The tokenizers crate says so by a panic, whose words may change.
TEST_F(Door, ATextThatWearsTheSplittingRuleOutIsTheTextsFault) {
  const std::string json = R"({
    "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
    "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a|aa)+b"},
                      "behavior": "Isolated", "invert": false}})";
  LtTokenizer* tokenizer = nullptr;
  ASSERT_EQ(lt_tokenizer_new(Data(json), json.size(), &tokenizer, &error_),
            LT_OK)
      << Take(error_);
  const std::string text(60, 'a');
  LtIds ids = {};
  EXPECT_EQ(lt_encode(tokenizer, Data(text), text.size(), false, &ids, &error_),
            LT_INVALID);
  EXPECT_EQ(Take(error_),
            "the text has a run of alike characters that is too long for the "
            "tokenizer's splitting rule");
  lt_tokenizer_free(tokenizer);
}

TEST_F(Door, EncodesAndDecodes) {
  const std::string text = "the <s>";
  LtIds ids = {};
  ASSERT_EQ(lt_encode(tokenizer_, Data(text), text.size(), true, &ids, &error_),
            LT_OK);
  EXPECT_EQ(std::vector<uint32_t>(ids.data, ids.data + ids.size),
            (std::vector<uint32_t>{1, 274, 259, 1}));
  LtBytes decoded = {};
  ASSERT_EQ(lt_decode(tokenizer_, ids.data, ids.size, true, &decoded, &error_),
            LT_OK);
  EXPECT_EQ(Take(decoded), "the ");
  lt_ids_free(&ids);
}

TEST_F(Door, TakesNothingForEmptyAndNullForAMistake) {
  LtIds ids = {};
  EXPECT_EQ(lt_encode(tokenizer_, nullptr, 0, false, &ids, &error_), LT_OK);
  EXPECT_EQ(ids.size, 0);
  lt_ids_free(&ids);
  EXPECT_EQ(lt_encode(nullptr, nullptr, 0, false, &ids, &error_), LT_INVALID);
  EXPECT_EQ(Take(error_), "a null object");
  EXPECT_EQ(lt_encode(tokenizer_, nullptr, 0, false, nullptr, &error_),
            LT_INVALID);
  EXPECT_EQ(Take(error_), "nowhere to put the result");
  const std::string bad = "\xff";
  EXPECT_EQ(lt_encode(tokenizer_, Data(bad), 1, false, &ids, &error_),
            LT_INVALID);
  lt_tokenizer_free(nullptr);
  lt_template_free(nullptr);
  lt_bytes_free(nullptr);
}

TEST_F(Door, FindsATokenByItsText) {
  uint32_t id = 0;
  bool found = false;
  ASSERT_EQ(lt_token_id(tokenizer_, Data("</s>"), 4, &id, &found, &error_),
            LT_OK);
  EXPECT_TRUE(found);
  EXPECT_EQ(id, 2);
  ASSERT_EQ(lt_token_id(tokenizer_, Data("nix"), 3, &id, &found, &error_),
            LT_OK);
  EXPECT_FALSE(found);
}

TEST_F(Door, ListsTheVocabulary) {
  LtVocabulary vocabulary = {};
  ASSERT_EQ(lt_vocabulary(tokenizer_, &vocabulary, &error_), LT_OK);
  EXPECT_TRUE(vocabulary.byte_fallback);
  EXPECT_EQ(vocabulary.strip_leading_spaces, 1);
  ASSERT_EQ(vocabulary.kinds.size, 285);
  EXPECT_EQ(vocabulary.kinds.data[1], LT_TOKEN_TEXT | LT_TOKEN_SPECIAL);
  EXPECT_EQ(vocabulary.kinds.data[3], LT_TOKEN_BYTE);
  EXPECT_EQ(vocabulary.kinds.data[274], LT_TOKEN_TEXT);
  const size_t begin = vocabulary.ends.data[273];
  EXPECT_EQ(
      std::string(reinterpret_cast<const char*>(vocabulary.bytes.data) + begin,
                  vocabulary.ends.data[274] - begin),
      " the");
  lt_vocabulary_free(&vocabulary);
  EXPECT_EQ(vocabulary.kinds.data, nullptr);
}

TEST_F(Door, ServesManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([this] {
      const std::string text = "an onion in the air";
      for (int round = 0; round < 200; ++round) {
        LtIds ids = {};
        LtBytes decoded = {}, error = {};
        EXPECT_EQ(
            lt_encode(tokenizer_, Data(text), text.size(), false, &ids, &error),
            LT_OK);
        EXPECT_EQ(
            lt_decode(tokenizer_, ids.data, ids.size, false, &decoded, &error),
            LT_OK);
        EXPECT_EQ(Take(decoded), text);
        lt_ids_free(&ids);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Door, RendersATemplate) {
  const std::string source = "{{ a }}{{ b }}";
  const std::string variables = R"({"a": 1, "b": 2})";
  LtTemplate* chat_template = nullptr;
  ASSERT_EQ(lt_template_new(Data(source), source.size(), Data(variables),
                            variables.size(), &chat_template, &error_),
            LT_OK);
  const std::string context = R"({"b": "x"})";
  LtBytes text = {};
  ASSERT_EQ(
      lt_render(chat_template, Data(context), context.size(), &text, &error_),
      LT_OK);
  EXPECT_EQ(Take(text), "1x");
  lt_template_free(chat_template);
}

}  // namespace
}  // namespace lockstep
