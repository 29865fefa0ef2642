#include "worker/collectives/rank_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/product/tree_sum.h"

namespace lockstep {
namespace {

TEST(SumOverRanks, AddsInTheOrderOfTheTree) {
  std::mt19937 random(7);
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const size_t count : {0, 1, 1023, 1024, 1025, 5000}) {
      std::vector<std::vector<float>> values(ranks);
      std::vector<const float*> of_rank;
      for (std::vector<float>& of_one : values) {
        of_one.resize(count);
        for (float& value : of_one) {
          value = std::ldexp(static_cast<float>(random() % 2000) - 1000.0f,
                             static_cast<int>(random() % 40) - 20);
        }
        of_rank.push_back(of_one.data());
      }
      std::vector<float> expected(count), sum(count);
      for (size_t i = 0; i < count; ++i) {
        expected[i] =
            kernels::TreeSum(ranks, [&](int r) { return values[r][i]; });
      }
      SumOverRanks(of_rank, absl::MakeSpan(sum));
      EXPECT_EQ(sum, expected) << ranks << " ranks, " << count << " values";
    }
  }
}

}  // namespace
}  // namespace lockstep
