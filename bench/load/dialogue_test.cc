#include "bench/load/dialogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace lockstep::bench {
namespace {

using Ids = std::vector<uint32_t>;

bool StartsWith(const Ids& ids, const Ids& prefix) {
  return ids.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), ids.begin());
}

TEST(Dialogue, SaysInEachTurnAllThatWasSaidBefore) {
  Dialogue dialogue({.prompt_tokens = 10, .output_tokens = 3, .turns = 2}, 1,
                    {});
  const Prompt first = dialogue.NextPrompt({});
  EXPECT_EQ(first.ids.size(), 10);
  EXPECT_EQ(first.output_tokens, 3);
  ASSERT_TRUE(dialogue.has_more());

  const Ids answer = {7, 8, 9};
  const Prompt second = dialogue.NextPrompt(answer);
  Ids before = first.ids;
  before.insert(before.end(), answer.begin(), answer.end());
  EXPECT_TRUE(StartsWith(second.ids, before));
  EXPECT_EQ(second.ids.size(), 10 + 3 + 10);
  EXPECT_FALSE(dialogue.has_more());
}

TEST(Dialogue, IsTheSameAgainAndAnotherByNumberAndSeed) {
  const DialogueOptions options;
  DialogueOptions other_seed;
  other_seed.seed = 2;
  const Ids ids = Dialogue(options, 5, {}).NextPrompt({}).ids;
  EXPECT_EQ(Dialogue(options, 5, {}).NextPrompt({}).ids, ids);
  EXPECT_NE(Dialogue(options, 6, {}).NextPrompt({}).ids, ids);
  EXPECT_NE(Dialogue(other_seed, 5, {}).NextPrompt({}).ids, ids);
}

TEST(Dialogue, BeginsWithOneOfTheSharedPrefixes) {
  const DialogueOptions options = {
      .prompt_tokens = 4, .prefixes = 3, .prefix_tokens = 20};
  std::set<Ids> prefixes, all;
  for (int i = 0; i < 60; ++i) {
    Ids ids = Dialogue(options, i, {}).NextPrompt({}).ids;
    ASSERT_EQ(ids.size(), 24);
    all.insert(ids);
    ids.resize(20);
    prefixes.insert(ids);
  }
  EXPECT_EQ(prefixes.size(), 3);
  EXPECT_EQ(all.size(), 60);
}

TEST(Dialogue, DrawsLengthsWithinTheSpread) {
  const DialogueOptions options = {
      .prompt_tokens = 100, .output_tokens = 10, .spread = 0.5};
  std::set<size_t> lengths;
  for (int i = 0; i < 200; ++i) {
    const Prompt prompt = Dialogue(options, i, {}).NextPrompt({});
    EXPECT_GE(prompt.ids.size(), 50);
    EXPECT_LE(prompt.ids.size(), 150);
    EXPECT_GE(prompt.output_tokens, 5);
    EXPECT_LE(prompt.output_tokens, 15);
    lengths.insert(prompt.ids.size());
  }
  EXPECT_GT(lengths.size(), 40);
}

TEST(Dialogue, HasTheLengthsOfItsTrace) {
  const Arrival arrival = {.at_s = 0, .prompt_tokens = 33, .output_tokens = 2};
  const Prompt prompt = Dialogue({}, 0, arrival).NextPrompt({});
  EXPECT_EQ(prompt.ids.size(), 33);
  EXPECT_EQ(prompt.output_tokens, 2);
}

}  // namespace
}  // namespace lockstep::bench
