#include "worker/sampling/sampling_noise.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace lockstep {
namespace {

// Pearson's statistic of counts that should be equal.
template <size_t N>
double ChiSquare(const std::array<int, N>& counts, double expected) {
  double sum = 0;
  for (const int count : counts) {
    sum += (count - expected) * (count - expected) / expected;
  }
  return sum;
}

// Above it lies one in a million of chi-square with 63 degrees of freedom.
constexpr double kLimit63 = 133.0;

TEST(SamplingNoiseTest, IsUniformOverPositionsAndOverSeeds) {
  constexpr int kDraws = 64 * 1000;
  std::array<int, 64> by_position = {};
  std::array<int, 64> by_seed = {};
  std::array<int, 64> by_choice = {};
  for (int i = 0; i < kDraws; ++i) {
    ++by_position[static_cast<int>(SamplingNoise(1, 0, i) * 64)];
    ++by_seed[static_cast<int>(SamplingNoise(i, 0, 5) * 64)];
    ++by_choice[static_cast<int>(SamplingNoise(1, i, 5) * 64)];
  }
  EXPECT_LT(ChiSquare(by_position, 1000), kLimit63);
  EXPECT_LT(ChiSquare(by_seed, 1000), kLimit63);
  EXPECT_LT(ChiSquare(by_choice, 1000), kLimit63);
}

TEST(SamplingNoiseTest, NeighboursAreIndependent) {
  // Pairs of successive positions, and of equal positions of two choices, in an
  // 8 by 8 grid.
  constexpr int kDraws = 64 * 1000;
  std::array<int, 64> positions = {};
  std::array<int, 64> choices = {};
  const auto cell = [](double a, double b) {
    return static_cast<int>(a * 8) * 8 + static_cast<int>(b * 8);
  };
  for (int i = 0; i < kDraws; ++i) {
    const double noise = SamplingNoise(9, 0, i);
    ++positions[cell(noise, SamplingNoise(9, 0, i + 1))];
    ++choices[cell(noise, SamplingNoise(9, 1, i))];
  }
  EXPECT_LT(ChiSquare(positions, 1000), kLimit63);
  EXPECT_LT(ChiSquare(choices, 1000), kLimit63);
}

TEST(SamplingNoiseTest, DependsOnEveryBitOfTheSeed) {
  std::set<double> values = {SamplingNoise(0, 0, 0)};
  for (int bit = 0; bit < 64; ++bit) {
    values.insert(SamplingNoise(uint64_t{1} << bit, 0, 0));
  }
  EXPECT_EQ(values.size(), 65);
}

TEST(SamplingNoiseTest, IsBelowOne) {
  for (int i = 0; i < 100000; ++i) {
    const double noise = SamplingNoise(3, 1, i);
    ASSERT_GE(noise, 0);
    ASSERT_LT(noise, 1);
  }
}

}  // namespace
}  // namespace lockstep
