#include "kernels/product/tree_sum.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::kernels {
namespace {

// Terms chosen so that every order of addition that differs shows in the bits.
const std::vector<float> kTerms = {1e8f,  3.0f, -1e8f, 7.0f, 5e7f,
                                   1.25f, -5e7, 1e-3f, 2e3f};

float Sum(int n, int first = 0) {
  return TreeSum(
      n, [](int i) { return kTerms[i]; }, first);
}

TEST(TreeSumTest, AddsInTheDocumentedOrder) {
  const auto& t = kTerms;
  EXPECT_EQ(Sum(1), t[0]);
  EXPECT_EQ(Sum(2), t[0] + t[1]);
  EXPECT_EQ(Sum(3), (t[0] + t[1]) + t[2]);
  EXPECT_EQ(Sum(5), ((t[0] + t[1]) + (t[2] + t[3])) + t[4]);
  EXPECT_EQ(Sum(6), ((t[0] + t[1]) + (t[2] + t[3])) + (t[4] + t[5]));
  EXPECT_EQ(Sum(8),
            ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7])));
}

TEST(TreeSumTest, RanksWithSubTreesFinishTheSameTree) {
  for (int ranks : {2, 4, 8}) {
    const int slices = 8 / ranks;
    const float sum =
        TreeSum(ranks, [&](int rank) { return Sum(slices, rank * slices); });
    EXPECT_EQ(sum, Sum(8)) << ranks << " ranks";
  }
}

TEST(TreeSumTest, AsksForEachTermOnceInOrder) {
  std::vector<int> asked;
  TreeSum(7, [&](int i) {
    asked.push_back(i);
    return 0.0f;
  });
  EXPECT_EQ(asked, (std::vector<int>{0, 1, 2, 3, 4, 5, 6}));
}

}  // namespace
}  // namespace lockstep::kernels
