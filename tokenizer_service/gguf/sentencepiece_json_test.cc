#include "tokenizer_service/gguf/sentencepiece_json.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using nlohmann::json;

TEST(SentencePieceMerges, ABetterScoreComesFirst) {
  EXPECT_EQ(SentencePieceMerges({{"a", -9},
                                 {"b", -9},
                                 {"c", -9},
                                 {"ab", -2},
                                 {"bc", -1},
                                 {"abc", -3},
                                 {"xy", 0}}),
            json::parse(R"([["b", "c"], ["a", "b"], ["ab", "c"],
                            ["a", "bc"]])"));
}

TEST(SentencePieceMerges, OfEqualScoresTheLongerPartsDo) {
  EXPECT_EQ(SentencePieceMerges({{"a", 0}, {"aa", 0}, {"aaa", 0}, {"aaaa", 0}}),
            json::parse(R"([["aaa", "a"], ["aa", "aa"], ["aa", "a"],
                            ["a", "aaa"], ["a", "aa"], ["a", "a"]])"));
  EXPECT_EQ(SentencePieceMerges({{"b", 0}, {"a", 0}, {"ba", 0}, {"ab", 0}}),
            json::parse(R"([["b", "a"], ["a", "b"]])"));
}

TEST(SentencePieceMerges, CharactersAreNotCut) {
  EXPECT_EQ(SentencePieceMerges({{"é", 0}, {"\u2581", 0}, {"\u2581é", 0}}),
            json::parse("[[\"\u2581\", \"é\"]]"));
  EXPECT_EQ(SentencePieceMerges({{"", 0}}), json::array());
}

}  // namespace
}  // namespace lockstep
