// Matrix products on every instruction set this processor has: the same bits as
// the reference on one thread, for awkward shapes, any cut into rows and any
// number of threads; and the reference is right, by double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "kernels/product_conformance.h"
#include "kernels/row_group.h"
#include "kernels/simd/gate.h"
#include "kernels/weights/arithmetic.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_matrix.h"
#include "kernels/weights/random_rows.h"

namespace lockstep::kernels {
namespace {

TEST_F(ProductConformanceTest, GemmGivesTheSameBitsEverywhere) {
  for (DType type : kProductTypes) {
    for (const ProductShape& shape : kProductShapes) {
      const int cols = shape.ColsOf(type);
      const PackedMatrix w =
          Weights(type, shape.out, cols, shape.slices, Arithmetic::kStrict);
      for (int m : {1, 2, 3, 4, 5, 7, 13}) {
        const std::vector<float> x = Normal(m * (cols + 3));
        const int y_stride = shape.out + 5;
        ExpectSameBits(m * y_stride,
                       std::string(DTypeName(type)) + " out " +
                           std::to_string(shape.out) + " cols " +
                           std::to_string(cols) + " rows " + std::to_string(m),
                       [&](Ops& ops, float* y) {
                         ops.Gemm(w, x.data(), cols + 3, m, y, y_stride);
                       });
      }
    }
  }
}

TEST_F(ProductConformanceTest, GemmOfManyRowsIsThatOfEachRow) {
  for (DType type : kProductTypes) {
    const int cols = BlockValues(type) == 1 ? 300 : 512;
    // More than two blocks of rows.
    ExpectManyRowsGiveThatOfEach(
        Weights(type, /*out=*/50, cols, /*slices=*/2, Arithmetic::kStrict),
        /*rows=*/257, DTypeName(type));
  }
}

TEST_F(ProductConformanceTest, GemmOfMixedTypesFillsEachColumn) {
  const int cols = 256;
  PackedMatrix w(cols, cols);
  int count = 3;
  for (DType type : kProductTypes) {
    AddRows(type, count, &w);
    count += 11;
  }
  const int out = w.rows();
  for (int m : {1, 9}) {
    const std::vector<float> x = Normal(m * cols);
    ExpectSameBits(m * out, "mixed", [&](Ops& ops, float* y) {
      ops.Gemm(w, x.data(), cols, m, y, out);
    });
  }
}

TEST_F(ProductConformanceTest, GemmAddsABiasToTheFinishedSums) {
  for (int m : {1, 6}) {
    const int cols = 64, out = 37;
    const PackedMatrix w =
        Weights(DType::kQ8_0, out, cols, /*slices=*/2, Arithmetic::kStrict);
    const std::vector<float> x = Normal(m * cols), bias = Normal(out);
    const std::vector<float> y =
        ExpectSameBits(m * out, "bias", [&](Ops& ops, float* to) {
          ops.Gemm(w, x.data(), cols, m, to, out, bias.data());
        });
    std::vector<float> sums(m * out);
    reference_.ops->Gemm(w, x.data(), cols, m, sums.data(), out);
    for (int i = 0; i < m * out; ++i) EXPECT_EQ(y[i], sums[i] + bias[i % out]);
  }
}

TEST_F(ProductConformanceTest, GatedGemmIsTheGateTimesUp) {
  for (DType type : {DType::kQ4_1, DType::kF32}) {
    const int cols = 64, dim = 21, m = 5;
    for (Gate gate : {Gate::kSilu, Gate::kGeluTanh}) {
      ExpectGateTimesUp(
          Weights(type, 2 * dim, cols, /*slices=*/1, Arithmetic::kStrict), gate,
          m, DTypeName(type));
    }
  }
}

// Matrices of several types, with one row, few and many.
TEST_F(ProductConformanceTest, GroupedProductsAreThoseOfEachGroup) {
  constexpr int kCols = 64, kDim = 37, kOut = 2 * kDim;
  const std::vector<int> ends = {1, 4, 5, 45};
  const std::vector<float> x = Normal(ends.back() * kCols, 0.1f);
  for (Arithmetic arithmetic : {Arithmetic::kStrict, Arithmetic::kFast}) {
    std::vector<PackedMatrix> weights;
    for (DType type : {DType::kQ8_0, DType::kF32, DType::kQ4_1, DType::kBF16}) {
      weights.emplace_back(kCols, kCols / 2, arithmetic);
      AddRows(type, kDim, &weights.back());
      AddRows(type, kDim, &weights.back());
    }
    std::vector<RowGroup> groups;
    for (int i = 0; i < ends.size(); ++i) {
      groups.push_back({&weights[i], i == 0 ? 0 : ends[i - 1], ends[i]});
    }
    const std::vector<float> together =
        ExpectSameBits(ends.back() * kOut, "grouped", [&](Ops& ops, float* y) {
          ops.GroupedGemm(groups, x.data(), kCols, y, kOut);
        });
    std::vector<float> apart(together.size()), scratch(together.size());
    const std::vector<float> gated =
        ExpectSameBits(ends.back() * kDim, "gated", [&](Ops& ops, float* y) {
          ops.GroupedGatedGemm(groups, Gate::kSilu, x.data(), kCols,
                               scratch.data(), y, kDim);
        });
    std::vector<float> gated_apart(gated.size());
    for (const RowGroup& group : groups) {
      const float* rows = &x[group.begin * kCols];
      reference_.ops->Gemm(*group.w, rows, kCols, group.rows(),
                           &apart[group.begin * kOut], kOut);
      reference_.ops->GatedGemm(*group.w, Gate::kSilu, rows, kCols,
                                group.rows(), scratch.data(),
                                &gated_apart[group.begin * kDim], kDim);
    }
    EXPECT_EQ(FirstDifference(together, apart), -1);
    EXPECT_EQ(FirstDifference(gated, gated_apart), -1);
  }
}

TEST_F(ProductConformanceTest, GemmIsRightByDoublePrecision) {
  for (DType type : kProductTypes) {
    const int cols = 512, out = 20, m = 3;
    const std::vector<uint8_t> rows = RandomRows(type, out, cols, random_);
    PackedMatrix w(cols, cols / 2);
    w.AddRows(type, out, rows.data(), RowBytes(type, cols), 0);
    const std::vector<float> x = Normal(m * cols);
    std::vector<float> y(m * out), weights(cols);
    reference_.ops->Gemm(w, x.data(), cols, m, y.data(), out);
    for (int j = 0; j < out; ++j) {
      DecodeRow(type, &rows[j * RowBytes(type, cols)], cols, weights.data());
      for (int i = 0; i < m; ++i) {
        double sum = 0, absolute = 0;
        for (int k = 0; k < cols; ++k) {
          const double term = double{x[i * cols + k]} * weights[k];
          sum += term;
          absolute += std::abs(term);
        }
        // Each of cols additions rounds by at most half a unit of 2^-23.
        EXPECT_NEAR(y[i * out + j], sum, absolute * cols * 0x1p-24)
            << DTypeName(type);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
