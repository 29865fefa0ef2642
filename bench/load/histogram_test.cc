#include "bench/load/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace lockstep::bench {
namespace {

TEST(Histogram, HasQuantilesWithinHalfAPercent) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> durations(-3, 1.5);
  Histogram histogram;
  std::vector<double> all;
  for (int i = 0; i < 20'000; ++i) {
    all.push_back(durations(random));
    histogram.Record(all.back());
  }
  std::sort(all.begin(), all.end());
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = all[static_cast<size_t>(share * all.size()) - 1];
    EXPECT_NEAR(histogram.QuantileS(share) / exact, 1, 0.0051) << share;
    EXPECT_NEAR(histogram.ShareUpTo(exact), share, 0.01);
  }
  EXPECT_EQ(histogram.most_s(), all.back());
  EXPECT_LE(histogram.QuantileS(1), histogram.most_s());
}

TEST(Histogram, KeepsWhatIsOutOfItsRange) {
  Histogram histogram;
  for (const double seconds : {0.0, -1.0, 1e-9, 1e9}) histogram.Record(seconds);
  EXPECT_EQ(histogram.count(), 4);
  EXPECT_EQ(histogram.most_s(), 1e9);
  EXPECT_LE(histogram.QuantileS(0.5), 2e-6);
}

TEST(Histogram, OfNoneIsZero) {
  EXPECT_EQ(Histogram().QuantileS(0.5), 0);
  EXPECT_EQ(Histogram().ShareUpTo(1), 0);
}

TEST(Histogram, ComesBackFromJson) {
  Histogram histogram;
  for (int i = 1; i <= 100; ++i) histogram.Record(i * 1e-3);
  const Histogram other = Histogram::FromJson(histogram.ToJson());
  EXPECT_EQ(other.count(), 100);
  EXPECT_EQ(other.most_s(), histogram.most_s());
  EXPECT_EQ(other.QuantileS(0.9), histogram.QuantileS(0.9));
}

}  // namespace
}  // namespace lockstep::bench
