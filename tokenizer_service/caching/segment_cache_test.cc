#include "tokenizer_service/caching/segment_cache.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

using Ids = std::vector<uint32_t>;

constexpr size_t kEnough = 1 << 20;

bool Has(SegmentCache& cache, const std::string& text) {
  Ids ids;
  return cache.Append(text, &ids);
}

TEST(SegmentCache, GivesTheIdsBackBehindThoseThereAre) {
  SegmentCache cache(kEnough);
  Ids ids = {7};
  EXPECT_FALSE(cache.Append("a", &ids));
  EXPECT_EQ(ids, Ids{7});
  cache.Insert("a", {1, 2});
  cache.Insert("", {});
  EXPECT_TRUE(cache.Append("a", &ids));
  EXPECT_TRUE(cache.Append("", &ids));
  EXPECT_EQ(ids, (Ids{7, 1, 2}));
}

TEST(SegmentCache, TextsThatBeginAlikeAreNotTheSame) {
  SegmentCache cache(kEnough);
  const std::string zero("a\0", 2);
  cache.Insert("a", {1});
  EXPECT_FALSE(Has(cache, zero));
  EXPECT_FALSE(Has(cache, "ab"));
  EXPECT_FALSE(Has(cache, ""));
}

TEST(SegmentCache, ForgetsTheOneThatWasUsedLeastRecently) {
  const std::string text(1000, 'x');
  SegmentCache cache(20'000);
  for (int i = 0; i < 10; ++i) cache.Insert(absl::StrCat(i, text), {1});
  EXPECT_TRUE(Has(cache, "0" + text));
  for (int i = 10; i < 20; ++i) cache.Insert(absl::StrCat(i, text), {1});
  EXPECT_TRUE(Has(cache, "0" + text));
  EXPECT_FALSE(Has(cache, "1" + text));
  EXPECT_TRUE(Has(cache, "19" + text));
  EXPECT_LE(cache.bytes(), 20'000);
  EXPECT_GT(cache.bytes(), 16'000);
}

TEST(SegmentCache, OneTextDoesNotPushAllOthersOut) {
  SegmentCache cache(10'000);
  cache.Insert("small", {1});
  cache.Insert(std::string(5000, 'x'), {1});
  EXPECT_TRUE(Has(cache, "small"));
  EXPECT_FALSE(Has(cache, std::string(5000, 'x')));
}

TEST(SegmentCache, ManyThreadsFillAndReadIt) {
  SegmentCache cache(10'000);
  const auto work = [&cache](uint32_t seed) {
    for (uint32_t i = 0; i < 2000; ++i) {
      const uint32_t number = (i * 7 + seed) % 100;
      const std::string text = absl::StrCat("text ", number);
      Ids ids;
      if (cache.Append(text, &ids)) {
        EXPECT_EQ(ids, (Ids{number, number}));
      } else {
        cache.Insert(text, {number, number});
      }
    }
  };
  std::thread other(work, 3);
  work(5);
  other.join();
  EXPECT_LE(cache.bytes(), 10'000);
}

}  // namespace
}  // namespace lockstep
