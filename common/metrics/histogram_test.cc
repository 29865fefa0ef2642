#include "common/metrics/histogram.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace lockstep {
namespace {

constexpr double kBounds[] = {0.5, 1, 2};

TEST(HistogramTest, AValueFallsIntoTheFirstBucketWhoseBoundItDoesNotExceed) {
  Histogram histogram(kBounds);
  for (const double value : {0.0, 0.5, 0.6, 1.0, 2.0, 2.1, 100.0}) {
    histogram.Observe(value);
  }
  const Histogram::Snapshot seen = histogram.Read();
  EXPECT_EQ(seen.counts, (std::vector<uint64_t>{2, 2, 1, 2}));
  EXPECT_DOUBLE_EQ(seen.sum, 106.2);
}

TEST(HistogramTest, DurationsAreInSeconds) {
  Histogram histogram(kBounds);
  histogram.Observe(std::chrono::milliseconds(1500));
  EXPECT_EQ(histogram.Read().counts, (std::vector<uint64_t>{0, 0, 1, 0}));
  EXPECT_DOUBLE_EQ(histogram.Read().sum, 1.5);
}

TEST(HistogramTest, LosesNothingThatThreadsSeeAtOnce) {
  Histogram histogram(kBounds);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&histogram] {
      for (int n = 0; n < 10'000; ++n) histogram.Observe(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.Read().counts[1], 40'000);
  EXPECT_EQ(histogram.Read().sum, 40'000);
}

}  // namespace
}  // namespace lockstep
