// Matrix products on every instruction set this processor has: the same bits as
// the reference on one thread, for awkward shapes, any cut into rows and any
// number of threads; and the reference is right, by double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "kernels/ops_conformance.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_matrix.h"
#include "kernels/weights/random_rows.h"

namespace lockstep::kernels {
namespace {

const DType kTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16,
                        DType::kQ8_0, DType::kQ4_0, DType::kQ4_1,
                        DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

struct GemmShape {
  int out;     // output columns
  int blocks;  // K in blocks of the type (of 9 columns for plain types)
  int slices;
};

// Kinds of tail: part of a panel, odd panels, K of one block, slices that are
// no power of two, K beyond the cache block of 128.
const GemmShape kGemmShapes[] = {
    {1, 1, 1},  {15, 2, 2}, {16, 3, 3},   {17, 5, 5},
    {33, 6, 1}, {64, 8, 8}, {100, 14, 7}, {47, 15, 15},
};

int ColsOf(DType type, const GemmShape& shape) {
  return shape.blocks * (BlockValues(type) == 1 ? 9 : BlockValues(type));
}

TEST_F(OpsConformanceTest, GemmGivesTheSameBitsEverywhere) {
  for (DType type : kTypes) {
    for (const GemmShape& shape : kGemmShapes) {
      const int cols = ColsOf(type, shape);
      PackedMatrix w(cols, cols / shape.slices);
      const std::vector<uint8_t> rows =
          RandomRows(type, shape.out, cols, random_);
      w.AddRows(type, shape.out, rows.data(), RowBytes(type, cols), 0);
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

TEST_F(OpsConformanceTest, GemmOfManyRowsIsThatOfEachRow) {
  for (DType type : kTypes) {
    const int cols = BlockValues(type) == 1 ? 300 : 512;
    const int out = 50;
    PackedMatrix w(cols, cols / 2);
    const std::vector<uint8_t> rows = RandomRows(type, out, cols, random_);
    w.AddRows(type, out, rows.data(), RowBytes(type, cols), 0);
    constexpr int kRows = 257;  // more than two blocks of rows
    const std::vector<float> x = Normal(kRows * cols);
    for (const Backend& backend : backends_) {
      if (backend.name.find("reference") == 0) continue;
      std::vector<float> together(kRows * out), alone(kRows * out);
      backend.ops->Gemm(w, x.data(), cols, kRows, together.data(), out);
      for (int row = 0; row < kRows; ++row) {
        backend.ops->Gemm(w, &x[row * cols], cols, 1, &alone[row * out], out);
      }
      EXPECT_EQ(FirstDifference(together, alone), -1)
          << DTypeName(type) << ": " << backend.name;
    }
  }
}

TEST_F(OpsConformanceTest, GemmOfMixedTypesFillsEachColumn) {
  const int cols = 256;
  PackedMatrix w(cols, cols);
  std::vector<std::vector<uint8_t>> rows;
  int out = 0;
  for (DType type : kTypes) {
    const int count = 3 + 11 * rows.size();
    rows.push_back(RandomRows(type, count, cols, random_));
    w.AddRows(type, count, rows.back().data(), RowBytes(type, cols), 0);
    out += count;
  }
  for (int m : {1, 9}) {
    const std::vector<float> x = Normal(m * cols);
    ExpectSameBits(m * out, "mixed", [&](Ops& ops, float* y) {
      ops.Gemm(w, x.data(), cols, m, y, out);
    });
  }
}

TEST_F(OpsConformanceTest, GemmAddsABiasToTheFinishedSums) {
  for (int m : {1, 6}) {
    const int cols = 64, out = 37;
    PackedMatrix w(cols, cols / 2);
    const std::vector<uint8_t> rows =
        RandomRows(DType::kQ8_0, out, cols, random_);
    w.AddRows(DType::kQ8_0, out, rows.data(), RowBytes(DType::kQ8_0, cols), 0);
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

TEST_F(OpsConformanceTest, GatedGemmIsSiluOfGateTimesUp) {
  for (DType type : {DType::kQ4_1, DType::kF32}) {
    const int cols = 64, dim = 21, m = 5;
    PackedMatrix w(cols, cols);
    const std::vector<uint8_t> rows = RandomRows(type, 2 * dim, cols, random_);
    w.AddRows(type, 2 * dim, rows.data(), RowBytes(type, cols), 0);
    const std::vector<float> x = Normal(m * cols, 0.1f);
    std::vector<float> scratch(m * 2 * dim);
    const std::vector<float> y =
        ExpectSameBits(m * dim, DTypeName(type), [&](Ops& ops, float* to) {
          ops.GatedGemm(w, x.data(), cols, m, scratch.data(), to, dim);
        });
    std::vector<float> apart(m * dim);
    reference_.ops->Gemm(w, x.data(), cols, m, scratch.data(), 2 * dim);
    reference_.ops->SiluMul(scratch.data(), 2 * dim, m, dim, apart.data(), dim);
    EXPECT_EQ(FirstDifference(y, apart), -1) << DTypeName(type);
  }
}

TEST_F(OpsConformanceTest, GemmIsRightByDoublePrecision) {
  for (DType type : kTypes) {
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
