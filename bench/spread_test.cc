#include "bench/spread.h"

#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

TEST(Spread, IsOfTheMiddleAndTheEnds) {
  const Spread odd = SpreadOf({5, 1, 3});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.least, 1);
  EXPECT_EQ(odd.most, 5);
  EXPECT_EQ(SpreadOf({4, 1, 2, 3}).median, 2.5);
  EXPECT_EQ(SpreadOf({7}).median, 7);
}

TEST(Percentile, IsTheLeastValueThatCoversTheShare) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  EXPECT_EQ(Percentile(values, 0.5), 50);
  EXPECT_EQ(Percentile(values, 0.99), 99);
  EXPECT_EQ(Percentile(values, 1), 100);
  EXPECT_EQ(Percentile({3, 1, 2}, 0.99), 3);
  EXPECT_EQ(Percentile({}, 0.99), 0);
}

}  // namespace
}  // namespace lockstep::bench
