#include "worker/cache/page_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

TEST(PagePoolTest, GivesTheLowestFreeIdFirst) {
  PagePool pool(4);
  EXPECT_EQ(pool.Allocate(), 0);
  EXPECT_EQ(pool.Allocate(), 1);
  EXPECT_EQ(pool.Allocate(), 2);
  pool.Free(2);
  pool.Free(0);
  EXPECT_EQ(pool.Allocate(), 0);
  EXPECT_EQ(pool.Allocate(), 2);
  EXPECT_EQ(pool.Allocate(), 3);
  EXPECT_EQ(pool.num_free(), 0);
}

TEST(PagePoolTest, CountsAndKnowsWhatIsFree) {
  PagePool pool(3);
  EXPECT_EQ(pool.num_pages(), 3);
  EXPECT_EQ(pool.num_free(), 3);
  const int32_t page = pool.Allocate();
  EXPECT_FALSE(pool.is_free(page));
  EXPECT_TRUE(pool.is_free(1));
  EXPECT_EQ(pool.num_free(), 2);
}

TEST(PagePoolDeathTest, RefusesMisuse) {
  PagePool pool(1);
  EXPECT_DEATH(pool.Free(0), "freed twice");
  EXPECT_DEATH(pool.Free(1), "page 1");
  pool.Allocate();
  EXPECT_DEATH(pool.Allocate(), "");
}

}  // namespace
}  // namespace lockstep
