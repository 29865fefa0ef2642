// Products with weights as stored, against the same in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/cuda/dense_product.h"
#include "kernels/cuda/kernel_run.h"
#include "kernels/cuda/quantized_product.h"
#include "kernels/product_conformance.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/random_rows.h"

namespace lockstep::cuda {
namespace {

using kernels::DType;

template <typename X, typename Y>
CudaError Multiply(const ProductArgs<X, Y>& args) {
  return kernels::IsPlain(args.w.type) ? MultiplyDense(args, nullptr)
                                       : MultiplyStored(args, nullptr);
}

template <typename T>
class ProductTest : public testing::Test {
 protected:
  ProductTest() : random_(kernels::kSeed) {
    RecordProperty("seed", kernels::kSeed);
  }

  // In rows without gaps.
  template <typename Y = T>
  std::vector<Y> Product(const StoredMatrix& w, const std::vector<T>& x,
                         int count, const float* bias = nullptr) {
    return SameInEveryOrder(std::vector<Y>(count * w.rows), [&](Y* y) {
      return Multiply<T, Y>({w, bias, x.data(), count, y, w.rows});
    });
  }

  // Of a dense sum each of its multiply-adds rounds by at most half a unit, of
  // one by a warp each of cols / 32 of a lane, and five sums of lanes.
  template <typename Y>
  static void ExpectRight(const StoredMatrix& w, const std::vector<T>& x,
                          const std::vector<Y>& y) {
    const size_t bytes = kernels::RowBytes(w.type, w.cols);
    const int roundings = kernels::IsPlain(w.type) ? w.cols : w.cols / 32 + 6;
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
      ASSERT_NEAR(
          AsFloat(y[at]), sum,
          absolute * roundings * 0x1p-24 + std::abs(sum) * Rounding<Y>())
          << kernels::DTypeName(w.type) << " row " << i << " output " << j;
    }
  }

  std::mt19937 random_;
};

using Types = testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(ProductTest, Types);

TYPED_TEST(ProductTest, IsRightForAwkwardShapes) {
  using T = TypeParam;
  for (DType type : kernels::kProductTypes) {
    for (const kernels::ProductShape& shape : kernels::kProductShapes) {
      const int cols = shape.ColsOf(type);
      const auto rows =
          kernels::RandomRows(type, shape.out, cols, this->random_);
      const StoredMatrix w = {type, rows.data(), shape.out, cols};
      for (int count : {1, 5, 35}) {
        // Blocks of quantized products have few rows.
        if (count == 35 && !kernels::IsPlain(type)) continue;
        const auto x = RandomValues<T>(count * cols, this->random_);
        this->ExpectRight(w, x, this->Product(w, x, count));
        if (std::is_same_v<T, float>) continue;
        this->ExpectRight(w, x, this->template Product<float>(w, x, count));
      }
    }
  }
}

TYPED_TEST(ProductTest, ARowDoesNotDependOnTheOthers) {
  using T = TypeParam;
  const int cols = 512, out = 9, count = 12;
  for (DType type : kernels::kProductTypes) {
    const auto rows = kernels::RandomRows(type, out, cols, this->random_);
    const StoredMatrix w = {type, rows.data(), out, cols};
    const auto x = RandomValues<T>(count * cols, this->random_);
    const std::vector<T> together = this->Product(w, x, count);
    for (int i = 0; i < count; ++i) {
      const std::vector<T> row(x.begin() + i * cols,
                               x.begin() + (i + 1) * cols);
      const std::vector<T> of_row(together.begin() + i * out,
                                  together.begin() + (i + 1) * out);
      EXPECT_TRUE(SameBits(this->Product(w, row, 1), of_row));
    }
  }
}

TYPED_TEST(ProductTest, AddsItsBiasAndLeavesWhatIsBetweenRows) {
  using T = TypeParam;
  const int cols = 256, out = 5, count = 3, stride = 7;
  const auto bias = RandomValues<float>(out, this->random_);
  for (DType type : kernels::kProductTypes) {
    const auto rows = kernels::RandomRows(type, out, cols, this->random_);
    const StoredMatrix w = {type, rows.data(), out, cols};
    const auto x = RandomValues<T>(count * cols, this->random_);
    const auto sums = this->template Product<float>(w, x, count);
    std::vector<float> y(count * stride, -1);
    ASSERT_EQ(Completed(Multiply<T, float>(
                  {w, bias.data(), x.data(), count, y.data(), stride})),
              kCudaSuccess);
    for (int i = 0; i < count * stride; ++i) {
      const int j = i % stride;
      EXPECT_EQ(y[i], j < out ? sums[i / stride * out + j] + bias[j] : -1);
    }
  }
}

// Tiles of three matrices, in an order of their own, some of no rows; rows of x
// are chosen.
TYPED_TEST(ProductTest, RowsOfGroupsHaveTheBitsThatTheyHaveAlone) {
  using T = TypeParam;
  const int cols = 256, out = 9, count = 23, x_count = 6;
  for (DType type : kernels::kProductTypes) {
    const auto rows = kernels::RandomRows(type, 3 * out, cols, this->random_);
    const size_t matrix_bytes = out * kernels::RowBytes(type, cols);
    const auto x = RandomValues<T>(x_count * cols, this->random_);
    std::vector<int32_t> x_rows(count);
    for (int32_t& row : x_rows) row = this->random_() % x_count;
    for (int tile_rows : {kFewTileRows, kMostTileRows}) {
      const std::vector<RowTile> tiles = {{2, 0, 7}, {0, 0, 0},  {0, 7, 1},
                                          {1, 8, 8}, {1, 16, 7}, {0, 0, 0}};
      const auto y = SameInEveryOrder(std::vector<T>(count * out), [&](T* to) {
        const ProductArgs<T, T> args = {
            {type, rows.data(), out, cols}, nullptr, x.data(), 0, to, out};
        const ProductGroups groups = {tiles.data(),
                                      static_cast<int>(tiles.size()), tile_rows,
                                      x_rows.data()};
        return kernels::IsPlain(type)
                   ? MultiplyDenseGroups(args, groups, nullptr)
                   : MultiplyStoredGroups(args, groups, nullptr);
      });
      for (const RowTile& tile : tiles) {
        const StoredMatrix w = {type, rows.data() + tile.matrix * matrix_bytes,
                                out, cols};
        for (int row = tile.begin; row < tile.begin + tile.count; ++row) {
          const auto from = x.begin() + x_rows[row] * cols;
          std::vector<T> alone(out);
          ASSERT_EQ(Completed(Multiply<T, T>(
                        {w, nullptr, &*from, 1, alone.data(), out})),
                    kCudaSuccess);
          EXPECT_TRUE(
              SameBits(alone, std::vector<T>(y.begin() + row * out,
                                             y.begin() + (row + 1) * out)))
              << kernels::DTypeName(type) << " row " << row;
        }
      }
    }
  }
}

TEST(DenseProductTest, NeedsItsBarriers) {
  std::mt19937 random(kernels::kSeed);
  const int cols = 70, out = 70, count = 9;
  const auto w = RandomValues<float>(out * cols, random);
  const auto x = RandomValues<float>(count * cols, random);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(w.data());
  ExpectNeedsEachBarrier(2, std::vector<float>(count * out), [&](float* y) {
    return MultiplyDense<float, float>(
        {{DType::kF32, bytes, out, cols}, nullptr, x.data(), count, y, out},
        nullptr);
  });
}

// Each weight alone, by a one in x.
TEST(StoredWeightTest, EveryValueOfABlockIsDecodedExactly) {
  std::mt19937 random(kernels::kSeed);
  for (DType type : kernels::kProductTypes) {
    const int cols = std::max(kernels::BlockValues(type), 32);
    const auto row = kernels::RandomRows(type, 1, cols, random);
    std::vector<float> expected(cols), identity(cols * cols), y(cols);
    kernels::DecodeRow(type, row.data(), cols, expected.data());
    for (int k = 0; k < cols; ++k) identity[k * cols + k] = 1;
    ASSERT_EQ(Completed(Multiply<float, float>({{type, row.data(), 1, cols},
                                                nullptr,
                                                identity.data(),
                                                cols,
                                                y.data(),
                                                1})),
              kCudaSuccess);
    EXPECT_EQ(y, expected) << kernels::DTypeName(type);
  }
}

TEST(StoredWeightTest, RefusesWhatItCanNotDecode) {
  const float x[32] = {};
  float y[1];
  const auto product = [&](DType type, int cols) {
    return ProductArgs<float, float>{
        {type, nullptr, 1, cols}, nullptr, x, 1, y, 1};
  };
  EXPECT_EQ(MultiplyStored(product(DType::kI8, 256), nullptr),
            kCudaInvalidValue);
  EXPECT_EQ(MultiplyStored(product(DType::kQ4_0, 31), nullptr),
            kCudaInvalidValue);
  EXPECT_EQ(MultiplyDense(product(DType::kQ8_0, 32), nullptr),
            kCudaInvalidValue);
}

}  // namespace
}  // namespace lockstep::cuda
