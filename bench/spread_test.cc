#include "bench/spread.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace lockstep::bench {
namespace {

TEST(Spread, IsOfTheMiddleAndTheEnds) {
  const Spread odd = SpreadOf({5, 1, 3});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.least, 1);
  EXPECT_EQ(odd.most, 5);
  EXPECT_EQ(SpreadOf({4, 1, 2, 3}).median, 2.5);
  EXPECT_EQ(SpreadOf({7}).median, 7);
  EXPECT_EQ(RangeToText(odd), "1.0-5.0");
  EXPECT_EQ(ToJson(odd),
            nlohmann::json({{"median", 3.0}, {"min", 1.0}, {"max", 5.0}}));
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

TEST(Percentiles, AreTheMedianAndTheTailInMilliseconds) {
  const std::vector<double> seconds = {0.25, 1, 0.5};
  EXPECT_EQ(PercentilesToText(seconds), "500.00 / 1000.00");
  EXPECT_EQ(PercentilesToJson(seconds),
            nlohmann::json({{"p50", 500.0}, {"p99", 1000.0}}));
  EXPECT_EQ(PercentilesToText({}), "");
}

}  // namespace
}  // namespace lockstep::bench
