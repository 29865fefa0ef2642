#include "worker/cache/prefix_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PrefixCacheTest, SharesWhatWasInserted) {
  PrefixCache cache(/*num_pages=*/4, /*page_size=*/2);
  const std::vector<uint32_t> tokens = {1, 2, 3, 4};
  std::vector<int32_t> pages;
  PrefixHold first = cache.Match(tokens, &pages);
  EXPECT_EQ(first.num_pages(), 0);
  ASSERT_TRUE(cache.Allocate(2, &pages));
  std::vector<int32_t> duplicates;
  cache.Insert(tokens, absl::MakeSpan(pages), &first, &duplicates);
  EXPECT_THAT(duplicates, IsEmpty());
  EXPECT_EQ(first.num_pages(), 2);

  std::vector<int32_t> shared;
  const PrefixHold second = cache.Match(tokens, &shared);
  EXPECT_EQ(shared, pages);
  EXPECT_EQ(cache.num_evictable(), 0);
  cache.Release(first);
  EXPECT_EQ(cache.num_evictable(), 0);
  cache.Release(second);
  EXPECT_EQ(cache.num_evictable(), 2);
  EXPECT_EQ(cache.num_available(), 4);
}

TEST(PrefixCacheTest, AllocatesAllOrNothing) {
  PrefixCache cache(3, 1);
  std::vector<int32_t> pages;
  EXPECT_FALSE(cache.Allocate(4, &pages));
  EXPECT_TRUE(pages.empty());
  EXPECT_EQ(cache.num_free(), 3);
  EXPECT_TRUE(cache.Allocate(3, &pages));
  EXPECT_THAT(pages, ElementsAre(0, 1, 2));
}

TEST(PrefixCacheTest, EvictsOnlyWhatIsMissing) {
  PrefixCache cache(4, 1);
  const std::vector<uint32_t> tokens = {1, 2, 3};
  std::vector<int32_t> pages;
  PrefixHold hold = cache.Match(tokens, &pages);
  ASSERT_TRUE(cache.Allocate(3, &pages));
  std::vector<int32_t> duplicates;
  cache.Insert(tokens, absl::MakeSpan(pages), &hold, &duplicates);
  cache.Release(hold);
  std::vector<int32_t> more;
  ASSERT_TRUE(cache.Allocate(2, &more));
  EXPECT_THAT(more, ElementsAre(2, 3));
  EXPECT_EQ(cache.num_cached(), 2);
}

// Two sequences computed the same prompt in one step. The later one's page
// table is rewritten, and its own pages are left over.
TEST(PrefixCacheTest, TheLaterOfTwoEqualPrefixesUsesTheEarlierOnesPages) {
  PrefixCache cache(6, 2);
  const std::vector<uint32_t> tokens = {1, 2, 3, 4};
  std::vector<int32_t> first;
  std::vector<int32_t> second;
  PrefixHold first_hold = cache.Match(tokens, &first);
  PrefixHold second_hold = cache.Match(tokens, &second);
  ASSERT_TRUE(cache.Allocate(3, &first));
  ASSERT_TRUE(cache.Allocate(3, &second));
  std::vector<int32_t> duplicates;
  cache.Insert(tokens, absl::MakeSpan(first).first(2), &first_hold,
               &duplicates);
  cache.Insert(tokens, absl::MakeSpan(second).first(2), &second_hold,
               &duplicates);
  EXPECT_THAT(first, ElementsAre(0, 1, 2));
  EXPECT_THAT(second, ElementsAre(0, 1, 5));
  EXPECT_THAT(duplicates, ElementsAre(3, 4));
  EXPECT_EQ(cache.num_free(), 0);
  cache.Free(duplicates);
  EXPECT_TRUE(cache.is_free(3));
  EXPECT_TRUE(cache.is_free(4));
}

// Random sequences come, grow, publish and go; a model of what each page must
// hold is kept beside, and every page is accounted for at all times.
class RandomUse {
 public:
  RandomUse(int page_size, uint32_t seed)
      : page_size_(page_size),
        random_(seed),
        cache_(kNumPages, page_size),
        content_(kNumPages) {}

  void Run(int steps) {
    for (int step = 1; step <= steps && !testing::Test::HasFailure(); ++step) {
      cache_.set_step(step);
      if (live_.empty() || Chance(3)) Begin();
      if (Chance(2)) Publish(Pick());
      if (Chance(4)) End(Pick());
      CheckPages();
    }
    while (!live_.empty()) End(0);
    CheckPages();
    EXPECT_EQ(cache_.num_evictable(), cache_.num_cached());
  }

 private:
  static constexpr int kNumPages = 24;

  struct Live {
    std::vector<uint32_t> tokens;
    std::vector<int32_t> pages;
    PrefixHold hold;
  };

  bool Chance(int n) { return random_() % n == 0; }
  size_t Pick() { return live_.empty() ? 0 : random_() % live_.size(); }

  std::vector<uint32_t> PageTokens(const Live& live, size_t page) const {
    const auto begin = live.tokens.begin() + page * page_size_;
    return {begin, begin + page_size_};
  }

  void Begin() {
    Live live;
    const int num_pages = 1 + static_cast<int>(random_() % 6);
    // Few distinct ids, so that prefixes are often equal.
    for (int i = 0; i < num_pages * page_size_; ++i) {
      live.tokens.push_back(i % page_size_ == 0 ? random_() % 2 : 7);
    }
    live.hold = cache_.Match(live.tokens, &live.pages);
    const int missing = num_pages - live.hold.num_pages();
    const bool fits = missing <= cache_.num_available();
    ASSERT_EQ(cache_.Allocate(missing, &live.pages), fits);
    if (!fits) {
      cache_.Release(live.hold);
      return;
    }
    for (int i = 0; i < live.hold.num_pages(); ++i) {
      ASSERT_EQ(content_[live.pages[i]], PageTokens(live, i));
    }
    for (int i = live.hold.num_pages(); i < num_pages; ++i) {
      content_[live.pages[i]] = PageTokens(live, i);
    }
    live_.push_back(live);
  }

  void Publish(size_t index) {
    if (live_.empty()) return;
    Live& live = live_[index];
    std::vector<int32_t> duplicates;
    cache_.Insert(live.tokens, absl::MakeSpan(live.pages), &live.hold,
                  &duplicates);
    cache_.Free(duplicates);
    ASSERT_EQ(live.hold.num_pages(), live.pages.size());
  }

  void End(size_t index) {
    if (live_.empty()) return;
    Live& live = live_[index];
    cache_.Free(absl::MakeConstSpan(live.pages).subspan(live.hold.num_pages()));
    cache_.Release(live.hold);
    live_.erase(live_.begin() + index);
  }

  // No page is lost or in two places, and everyone reads what they wrote.
  void CheckPages() {
    std::vector<int> uses(kNumPages);
    std::vector<bool> cached(kNumPages);
    for (int page = 0; page < kNumPages; ++page)
      uses[page] = cache_.is_free(page);
    for (const int32_t page : cache_.CachedPages()) {
      ++uses[page];
      cached[page] = true;
    }
    for (const Live& live : live_) {
      for (size_t i = 0; i < live.pages.size(); ++i) {
        const bool shared = i < live.hold.num_pages();
        ASSERT_EQ(cached[live.pages[i]], shared);
        if (!shared) ++uses[live.pages[i]];
        ASSERT_EQ(content_[live.pages[i]], PageTokens(live, i));
      }
    }
    for (int page = 0; page < kNumPages; ++page) ASSERT_EQ(uses[page], 1);
  }

  const int page_size_;
  std::mt19937 random_;
  PrefixCache cache_;
  std::vector<std::vector<uint32_t>> content_;  // by page
  std::vector<Live> live_;
};

TEST(PrefixCacheTest, KeepsEveryPageAccountedForUnderRandomUse) {
  for (const int page_size : {1, 2, 16, 256}) {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(testing::Message()
                   << "page size " << page_size << ", seed " << seed);
      RandomUse(page_size, seed).Run(page_size == 256 ? 100 : 400);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace lockstep
