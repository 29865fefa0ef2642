#include "frontend/routing/policy/prefix_index.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "frontend/routing/policy/page_chain.h"

namespace lockstep {
namespace {

std::vector<uint32_t> Prompt(uint32_t id, int pages) {
  return std::vector<uint32_t>(pages * kChainPageTokens, id);
}

TEST(HashPages, ChainsWholePagesUpToALimit) {
  std::vector<uint32_t> prompt = Prompt(5, 3);
  const auto chain = HashPages(prompt);
  ASSERT_EQ(chain.size(), 3);
  prompt.resize(prompt.size() + kChainPageTokens - 1, 6);
  EXPECT_EQ(HashPages(prompt), chain);
  prompt[kChainPageTokens] = 6;  // in the second page
  EXPECT_EQ(HashPages(prompt)[0], chain[0]);
  EXPECT_NE(HashPages(prompt)[1], chain[1]);
  EXPECT_NE(HashPages(prompt)[2], chain[2]);
  EXPECT_EQ(HashPages(Prompt(5, 300)).size(), 256);
  EXPECT_TRUE(HashPages({}).empty());
}

TEST(PrefixIndex, KnowsHowMuchOfAPromptItHas) {
  PrefixIndex index(100);
  std::vector<uint32_t> prompt = Prompt(5, 4);
  EXPECT_EQ(index.NumMatching(HashPages(prompt)), 0);
  index.Insert(HashPages(prompt));
  EXPECT_EQ(index.NumMatching(HashPages(prompt)), 4);
  EXPECT_EQ(index.NumMatching(HashPages(Prompt(5, 9))), 4);
  prompt[2 * kChainPageTokens] = 6;
  EXPECT_EQ(index.NumMatching(HashPages(prompt)), 2);
}

TEST(PrefixIndex, ForgetsTheLeastRecentlyUsedEndsFirst) {
  PrefixIndex index(4);
  const auto old = HashPages(Prompt(1, 3));
  index.Insert(old);
  index.Insert(HashPages(Prompt(2, 2)));
  EXPECT_EQ(index.NumMatching(old), 2);
  index.Insert(absl::MakeSpan(old).first(1));
  index.Insert(HashPages(Prompt(3, 2)));
  EXPECT_EQ(index.NumMatching(old), 1);
  EXPECT_EQ(index.size(), 4);
}

TEST(PrefixIndex, AChainLongerThanItsRoomIsKeptAtItsBeginning) {
  PrefixIndex index(2);
  index.Insert(HashPages(Prompt(1, 5)));
  EXPECT_EQ(index.NumMatching(HashPages(Prompt(1, 5))), 2);
}

// What is known of a chain is a beginning of it, whatever came before.
TEST(PrefixIndex, HoldsBeginningsOnly) {
  std::mt19937 random(1);
  PrefixIndex index(50);
  for (int i = 0; i < 5000; ++i) {
    std::vector<uint32_t> prompt;
    for (int page = random() % 8; page >= 0; --page) {
      prompt.resize(prompt.size() + kChainPageTokens, random() % 3);
    }
    const auto chain = HashPages(prompt);
    const size_t matching = index.NumMatching(chain);
    for (size_t j = 0; j < chain.size(); ++j) {
      ASSERT_EQ(index.NumMatching({&chain[j], 1}), j < matching) << i;
    }
    index.Insert(chain);
    ASSERT_LE(index.size(), 50);
  }
}

}  // namespace
}  // namespace lockstep
