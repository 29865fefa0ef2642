// Products with weights as stored, against the same in double precision.
#include "kernels/cuda/quantized_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cuda/kernel_run.h"
#include "kernels/product_conformance.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/random_rows.h"

namespace lockstep::cuda {
namespace {

using kernels::DType;

constexpr DType kTypes[] = {DType::kQ8_0, DType::kQ4_0, DType::kQ4_K};

template <typename T>
class QuantizedProductTest : public testing::Test {
 protected:
  QuantizedProductTest() : random_(kernels::kSeed) {
    RecordProperty("seed", kernels::kSeed);
  }

  std::vector<T> Multiply(const StoredMatrix& w, const std::vector<T>& x,
                          int count) {
    return SameInEveryOrder(std::vector<T>(count * w.rows), [&](T* y) {
      return MultiplyStored<T>(w, x.data(), count, y, nullptr);
    });
  }

  // Each of cols / 32 multiply-adds of a lane, and five sums of lanes, round by
  // at most half a unit.
  static void ExpectRight(const StoredMatrix& w, const std::vector<T>& x,
                          const std::vector<T>& y) {
    const size_t bytes = kernels::RowBytes(w.type, w.cols);
    std::vector<float> weights(w.cols);
    for (size_t at = 0; at < y.size(); ++at) {
      const int i = at / w.rows, j = at % w.rows;
      kernels::DecodeRow(w.type, w.data + j * bytes, w.cols, weights.data());
      double sum = 0, absolute = 0;
      for (int k = 0; k < w.cols; ++k) {
        const double term = double{AsFloat(x[i * w.cols + k])} * weights[k];
        sum += term;
        absolute += std::abs(term);
      }
      ASSERT_NEAR(AsFloat(y[at]), sum,
                  absolute * (w.cols / 32 + 6) * 0x1p-24 +
                      std::abs(sum) * Rounding<T>())
          << kernels::DTypeName(w.type) << " row " << i << " output " << j;
    }
  }

  std::mt19937 random_;
};

using Types = testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(QuantizedProductTest, Types);

TYPED_TEST(QuantizedProductTest, IsRightForAwkwardShapes) {
  using T = TypeParam;
  for (DType type : kTypes) {
    for (const kernels::ProductShape& shape : kernels::kProductShapes) {
      const int cols = shape.ColsOf(type);
      const auto rows =
          kernels::RandomRows(type, shape.out, cols, this->random_);
      const StoredMatrix w = {type, rows.data(), shape.out, cols};
      for (int count : {1, 5}) {
        const auto x = RandomValues<T>(count * cols, this->random_);
        this->ExpectRight(w, x, this->Multiply(w, x, count));
      }
    }
  }
}

TYPED_TEST(QuantizedProductTest, ARowDoesNotDependOnTheOthers) {
  using T = TypeParam;
  const int cols = 512, out = 9, count = 7;
  for (DType type : kTypes) {
    const auto rows = kernels::RandomRows(type, out, cols, this->random_);
    const StoredMatrix w = {type, rows.data(), out, cols};
    const auto x = RandomValues<T>(count * cols, this->random_);
    const std::vector<T> together = this->Multiply(w, x, count);
    for (int i = 0; i < count; ++i) {
      const std::vector<T> row(x.begin() + i * cols,
                               x.begin() + (i + 1) * cols);
      const std::vector<T> of_row(together.begin() + i * out,
                                  together.begin() + (i + 1) * out);
      EXPECT_TRUE(SameBits(this->Multiply(w, row, 1), of_row));
    }
  }
}

// Each weight alone, by a one in x.
TEST(StoredWeightTest, EveryValueOfABlockIsDecodedExactly) {
  std::mt19937 random(kernels::kSeed);
  for (DType type : kTypes) {
    const int cols = kernels::BlockValues(type);
    const auto row = kernels::RandomRows(type, 1, cols, random);
    std::vector<float> expected(cols), identity(cols * cols), y(cols);
    kernels::DecodeRow(type, row.data(), cols, expected.data());
    for (int k = 0; k < cols; ++k) identity[k * cols + k] = 1;
    ASSERT_EQ(Completed(MultiplyStored<float>({type, row.data(), 1, cols},
                                              identity.data(), cols, y.data(),
                                              nullptr)),
              kCudaSuccess);
    EXPECT_EQ(y, expected) << kernels::DTypeName(type);
  }
}

TEST(StoredWeightTest, RefusesWhatItCanNotDecode) {
  const float x[32] = {};
  float y[1];
  EXPECT_EQ(
      MultiplyStored<float>({DType::kQ6_K, nullptr, 1, 256}, x, 1, y, nullptr),
      kCudaInvalidValue);
  EXPECT_EQ(
      MultiplyStored<float>({DType::kQ4_0, nullptr, 1, 31}, x, 1, y, nullptr),
      kCudaInvalidValue);
}

}  // namespace
}  // namespace lockstep::cuda
