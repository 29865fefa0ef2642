#include "worker/cache/radix_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A tree of pages of two tokens, and short words for what tests do with it.
class RadixTreeTest : public ::testing::Test {
 protected:
  // The pages as they are rewritten; the duplicates go to duplicates_.
  std::vector<int32_t> Insert(std::vector<uint32_t> tokens,
                              std::vector<int32_t> pages) {
    duplicates_.clear();
    last_ = tree_.Insert(tokens, absl::MakeSpan(pages), step_, &duplicates_);
    return pages;
  }

  std::vector<int32_t> Match(std::vector<uint32_t> tokens) {
    std::vector<int32_t> pages;
    last_ = tree_.Match(tokens, step_, &pages);
    EXPECT_EQ(last_.num_pages, pages.size());
    return pages;
  }

  std::vector<int32_t> Evict(int count) {
    std::vector<int32_t> pages;
    tree_.Evict(count, &pages);
    return pages;
  }

  RadixTree tree_{2};
  uint64_t step_ = 1;
  RadixTree::Position last_ = {};
  std::vector<int32_t> duplicates_;
};

TEST_F(RadixTreeTest, MatchesWholePagesOnly) {
  Insert({1, 2, 3, 4}, {7, 5});
  EXPECT_THAT(Match({1, 2, 3, 4, 5}), ElementsAre(7, 5));
  EXPECT_THAT(Match({1, 2, 3}), ElementsAre(7));
  EXPECT_THAT(Match({1, 2, 3, 9}), ElementsAre(7));
  EXPECT_THAT(Match({1}), IsEmpty());
  EXPECT_THAT(Match({1, 3, 3, 4}), IsEmpty());
  EXPECT_THAT(Match({}), IsEmpty());
}

TEST_F(RadixTreeTest, SplitsWherePrefixesPart) {
  Insert({1, 2, 3, 4, 5, 6}, {10, 11, 12});
  EXPECT_EQ(tree_.ToString(), "1 2 3 4 5 6 | 10 11 12\n");
  EXPECT_THAT(Insert({1, 2, 3, 4, 7, 8}, {10, 11, 13}),
              ElementsAre(10, 11, 13));
  EXPECT_EQ(tree_.ToString(),
            "1 2 3 4 | 10 11\n"
            "  5 6 | 12\n"
            "  7 8 | 13\n");
  Insert({1, 2, 3, 9}, {10, 14});
  EXPECT_EQ(tree_.ToString(),
            "1 2 | 10\n"
            "  3 4 | 11\n"
            "    5 6 | 12\n"
            "    7 8 | 13\n"
            "  3 9 | 14\n");
  EXPECT_EQ(tree_.num_pages(), 5);
}

// A child is known by all ids of its first page, not by the first alone: two
// pages that differ in the last are two children.
TEST_F(RadixTreeTest, TellsPagesApartByTheirLastToken) {
  Insert({1, 2}, {0});
  Insert({1, 3}, {1});
  EXPECT_EQ(tree_.ToString(), "1 2 | 0\n1 3 | 1\n");
  EXPECT_THAT(Match({1, 3}), ElementsAre(1));
}

TEST_F(RadixTreeTest, RewritesPagesThatItHasAlready) {
  Insert({1, 2, 3, 4}, {7, 5});
  EXPECT_THAT(Insert({1, 2, 3, 4, 5, 6}, {1, 2, 3}), ElementsAre(7, 5, 3));
  EXPECT_THAT(duplicates_, ElementsAre(1, 2));
  EXPECT_EQ(tree_.num_pages(), 3);
  EXPECT_THAT(Insert({1, 2, 3, 4, 5, 6}, {7, 5, 3}), ElementsAre(7, 5, 3));
  EXPECT_THAT(duplicates_, IsEmpty());
}

TEST_F(RadixTreeTest, InsertingNothingEndsAtTheRoot) {
  Insert({}, {});
  EXPECT_EQ(last_.num_pages, 0);
  tree_.Lock(last_.node);
  tree_.Unlock(last_.node);
  EXPECT_EQ(tree_.ToString(), "");
}

TEST_F(RadixTreeTest, ALockKeepsTheWholePath) {
  Insert({1, 2, 3, 4, 5, 6}, {10, 11, 12});
  Match({1, 2, 3, 4});
  tree_.Lock(last_.node);
  EXPECT_EQ(tree_.ToString(),
            "1 2 3 4 | 10 11*\n"
            "  5 6 | 12\n");
  EXPECT_EQ(tree_.num_evictable(), 1);
  EXPECT_THAT(Evict(1), ElementsAre(12));
  EXPECT_EQ(tree_.num_evictable(), 0);
  tree_.Unlock(last_.node);
  EXPECT_THAT(Evict(2), ElementsAre(10, 11));
  EXPECT_EQ(tree_.num_pages(), 0);
  EXPECT_EQ(tree_.ToString(), "");
}

// The lower node stays the end of the prefix; both halves carry the lock, and
// unlocking walks over the new node as well.
TEST_F(RadixTreeTest, SplittingALockedNodeKeepsTheLock) {
  Insert({1, 2, 3, 4}, {10, 11});
  const RadixTree::Position held = last_;
  tree_.Lock(held.node);
  Insert({1, 2, 9, 9}, {10, 12});
  EXPECT_EQ(tree_.ToString(),
            "1 2 | 10*\n"
            "  3 4 | 11*\n"
            "  9 9 | 12\n");
  EXPECT_EQ(tree_.num_evictable(), 1);
  tree_.Unlock(held.node);
  EXPECT_EQ(tree_.num_evictable(), 3);
  EXPECT_EQ(tree_.ToString(), "1 2 | 10\n  3 4 | 11\n  9 9 | 12\n");
}

TEST_F(RadixTreeTest, EvictsLeastRecentlyUsedLeafFirst) {
  Insert({1, 2}, {0});
  step_ = 2;
  Insert({3, 4}, {1});
  step_ = 3;
  Insert({5, 6}, {2});
  step_ = 4;
  Match({1, 2});
  EXPECT_THAT(Evict(3), ElementsAre(1, 2, 0));
}

TEST_F(RadixTreeTest, EvictsTheOneMadeFirstOfThoseUsedInOneStep) {
  Insert({9, 9}, {2});
  Insert({1, 2}, {0});
  Insert({5, 6}, {1});
  Match({9, 9});  // in the same step: no difference
  EXPECT_THAT(Evict(3), ElementsAre(2, 0, 1));
}

TEST_F(RadixTreeTest, EvictsFromTheTailAndNoMoreThanAsked) {
  Insert({1, 2, 3, 4, 5, 6}, {10, 11, 12});
  EXPECT_THAT(Evict(1), ElementsAre(12));
  EXPECT_EQ(tree_.ToString(), "1 2 3 4 | 10 11\n");
  EXPECT_EQ(tree_.num_pages(), 2);
  EXPECT_THAT(Match({1, 2, 3, 4, 5, 6}), ElementsAre(10, 11));
}

TEST_F(RadixTreeTest, AParentBecomesALeafWhenItsChildrenAreGone) {
  Insert({1, 2, 3, 4}, {10, 11});
  step_ = 2;
  Insert({1, 2, 5, 6}, {10, 12});
  EXPECT_THAT(Evict(3), ElementsAre(11, 12, 10));
}

// The match that splits a node freshens only what it hit.
TEST_F(RadixTreeTest, APartlyHitNodeStaysAsOldAsItWas) {
  Insert({1, 2, 3, 4}, {10, 11});
  step_ = 2;
  Insert({7, 8}, {12});
  step_ = 3;
  Match({1, 2});
  EXPECT_THAT(Evict(3), ElementsAre(11, 12, 10));
}

// Pages freed and reused keep nothing of the prefix they held.
TEST_F(RadixTreeTest, AnEvictedPrefixIsForgotten) {
  Insert({1, 2}, {0});
  Evict(1);
  EXPECT_THAT(Match({1, 2}), IsEmpty());
  EXPECT_THAT(Insert({3, 4}, {0}), ElementsAre(0));
  EXPECT_THAT(Match({1, 2}), IsEmpty());
  EXPECT_THAT(Match({3, 4}), ElementsAre(0));
}

TEST_F(RadixTreeTest, ExtendsAMatchAcrossManyNodes) {
  std::vector<uint32_t> tokens;
  std::vector<int32_t> pages;
  for (int i = 0; i < 50; ++i) {
    tokens.insert(tokens.end(), {1, 2});
    pages.push_back(i);
    Insert(tokens, pages);
  }
  EXPECT_EQ(Match(tokens), pages);
  EXPECT_EQ(tree_.AllPages(), pages);
}

TEST_F(RadixTreeTest, ADeepTreeIsDestroyedWithoutRecursion) {
  RadixTree tree(1);
  std::vector<uint32_t> tokens;
  std::vector<int32_t> pages;
  std::vector<int32_t> duplicates;
  for (int i = 0; i < 5000; ++i) {
    tokens.push_back(1);
    pages.push_back(i);
    tree.Insert(tokens, absl::MakeSpan(pages), 1, &duplicates);
  }
  EXPECT_EQ(tree.num_pages(), 5000);
}

}  // namespace
}  // namespace lockstep
