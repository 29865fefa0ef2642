#include "frontend/generation/bad_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/fake_tokenizer.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

TEST(BadWords, AreThoseAtTheStartOfATextAndBehindASpace) {
  const FakeTokenizer tokenizer;  // an id a byte
  v1::SamplingParams sampling;
  const std::vector<std::string> words = {"no", " no", "\n", "a b"};
  ASSERT_TRUE(AddBadWords(words, tokenizer, &sampling).ok());
  ASSERT_EQ(sampling.bad_words_size(), 5);  // " no" was there
  EXPECT_THAT(sampling.bad_words(0).ids(), ElementsAre('n', 'o'));
  EXPECT_THAT(sampling.bad_words(1).ids(), ElementsAre(' ', 'n', 'o'));
  EXPECT_THAT(sampling.bad_words(2).ids(), ElementsAre('\n'));
  EXPECT_THAT(sampling.bad_words(3).ids(), ElementsAre('a', ' ', 'b'));
  EXPECT_THAT(sampling.bad_words(4).ids(), ElementsAre(' ', 'a', ' ', 'b'));
}

}  // namespace
}  // namespace lockstep
