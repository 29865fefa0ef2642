// Fast products on every instruction set this processor has: the same bits as
// the reference on one thread, for awkward shapes, any cut into rows and any
// number of threads; and the reference is right, by double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "kernels/ops_conformance.h"
#include "kernels/product/quantized_rows.h"
#include "kernels/weights/arithmetic.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_matrix.h"
#include "kernels/weights/random_rows.h"

namespace lockstep::kernels {
namespace {

const DType kTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16,
                        DType::kQ8_0, DType::kQ4_0, DType::kQ4_1,
                        DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

struct Shape {
  int out;     // output columns
  int blocks;  // K in blocks of the type (of 9 columns for plain types)
  int slices;
};

// Kinds of tail: part of a panel, an odd number of panels, K of one block,
// slices that are no power of two; for plain types slices that end inside a
// block of 32 columns.
const Shape kShapes[] = {
    {1, 1, 1},  {15, 2, 2}, {16, 3, 3},   {17, 5, 5},
    {33, 6, 1}, {64, 8, 8}, {100, 14, 7}, {47, 15, 15},
};

int ColsOf(DType type, const Shape& shape) {
  return shape.blocks * (BlockValues(type) == 1 ? 9 : BlockValues(type));
}

class FastConformanceTest : public OpsConformanceTest {
 protected:
  PackedMatrix Weights(DType type, int out, int cols, int slices) {
    PackedMatrix w(cols, cols / slices, Arithmetic::kFast);
    AddRows(type, out, cols, &w);
    return w;
  }

  void AddRows(DType type, int out, int cols, PackedMatrix* w) {
    const std::vector<uint8_t> rows = RandomRows(type, out, cols, random_);
    w->AddRows(type, out, rows.data(), RowBytes(type, cols), 0);
  }
};

TEST_F(FastConformanceTest, ProductsHaveTheSameBitsEverywhere) {
  for (DType type : kTypes) {
    for (const Shape& shape : kShapes) {
      const int cols = ColsOf(type, shape);
      const PackedMatrix w = Weights(type, shape.out, cols, shape.slices);
      const std::vector<float> bias = Normal(shape.out);
      for (int m : {1, 2, 3, 4, 5, 6, 7, 13}) {
        const std::vector<float> x = Normal(m * (cols + 3));
        const int y_stride = shape.out + 5;
        ExpectSameBits(m * y_stride,
                       std::string(DTypeName(type)) + " out " +
                           std::to_string(shape.out) + " cols " +
                           std::to_string(cols) + " rows " + std::to_string(m),
                       [&](Ops& ops, float* y) {
                         ops.Gemm(w, x.data(), cols + 3, m, y, y_stride,
                                  m % 2 == 0 ? bias.data() : nullptr);
                       });
      }
    }
  }
}

TEST_F(FastConformanceTest, GatedProductsAreSiluOfGateTimesUp) {
  for (DType type : kTypes) {
    for (int dim : {5, 40, 96}) {
      const int cols = ColsOf(type, {dim, 4, 1});
      PackedMatrix w(cols, cols, Arithmetic::kFast);
      AddRows(type, dim, cols, &w);
      AddRows(type, dim, cols, &w);
      for (int m : {1, 4, 8}) {
        const std::vector<float> x = Normal(m * cols, 0.1f);
        std::vector<float> scratch(m * 2 * dim);
        const std::vector<float> gated =
            ExpectSameBits(m * dim, DTypeName(type), [&](Ops& ops, float* y) {
              ops.GatedGemm(w, x.data(), cols, m, scratch.data(), y, dim);
            });
        std::vector<float> apart(m * dim);
        reference_.ops->Gemm(w, x.data(), cols, m, scratch.data(), 2 * dim);
        reference_.ops->SiluMul(scratch.data(), 2 * dim, m, dim, apart.data(),
                                dim);
        EXPECT_EQ(FirstDifference(gated, apart), -1) << DTypeName(type);
      }
    }
  }
}

TEST_F(FastConformanceTest, GateAndUpMayDifferInType) {
  const int cols = 256, dim = 20, m = 5;
  PackedMatrix w(cols, cols, Arithmetic::kFast);
  AddRows(DType::kQ4_K, dim, cols, &w);
  AddRows(DType::kQ6_K, dim, cols, &w);
  const std::vector<float> x = Normal(m * cols, 0.1f);
  std::vector<float> scratch(m * 2 * dim);
  ExpectSameBits(m * dim, "Q4_K, Q6_K", [&](Ops& ops, float* y) {
    ops.GatedGemm(w, x.data(), cols, m, scratch.data(), y, dim);
  });
}

TEST_F(FastConformanceTest, ProductOfManyRowsIsThatOfEachRow) {
  for (DType type : kTypes) {
    // More than two of the blocks of rows that the second-level cache holds.
    const int cols = BlockValues(type) == 1 ? 600 : 1024;
    const int out = 50, rows = 517;
    const PackedMatrix w = Weights(type, out, cols, 2);
    const std::vector<float> x = Normal(rows * cols);
    for (const Backend& backend : backends_) {
      if (backend.name.find("reference") == 0) continue;
      std::vector<float> together(rows * out), alone(rows * out);
      backend.ops->Gemm(w, x.data(), cols, rows, together.data(), out);
      for (int row = 0; row < rows; ++row) {
        backend.ops->Gemm(w, &x[row * cols], cols, 1, &alone[row * out], out);
      }
      EXPECT_EQ(FirstDifference(together, alone), -1)
          << DTypeName(type) << ": " << backend.name;
    }
  }
}

TEST_F(FastConformanceTest, MixedTypesFillEachColumn) {
  const int cols = 256;
  PackedMatrix w(cols, cols, Arithmetic::kFast);
  for (DType type : kTypes) AddRows(type, 3 + 2 * w.rows(), cols, &w);
  const std::vector<float> bias = Normal(w.rows());
  for (int m : {1, 9}) {
    const std::vector<float> x = Normal(m * cols);
    ExpectSameBits(m * w.rows(), "mixed", [&](Ops& ops, float* y) {
      ops.Gemm(w, x.data(), cols, m, y, w.rows(), bias.data());
    });
  }
}

// The largest magnitude of a block of 32.
float LargestOf(const float* values) {
  float largest = 0;
  for (int i = 0; i < kQuantBlock; ++i) {
    largest = std::max(largest, std::abs(values[i]));
  }
  return largest;
}

TEST_F(FastConformanceTest, ReferenceIsRightByDoublePrecision) {
  for (DType type : kTypes) {
    const bool plain = BlockValues(type) == 1;
    const double limit = kQuantLimit;
    const int cols = 512, out = 20, m = 3;
    const std::vector<uint8_t> rows = RandomRows(type, out, cols, random_);
    PackedMatrix w(cols, cols / 2, Arithmetic::kFast);
    w.AddRows(type, out, rows.data(), RowBytes(type, cols), 0);
    const std::vector<float> x = Normal(m * cols);
    std::vector<float> y(m * out), weights(cols);
    reference_.ops->Gemm(w, x.data(), cols, m, y.data(), out);
    for (int j = 0; j < out; ++j) {
      DecodeRow(type, &rows[j * RowBytes(type, cols)], cols, weights.data());
      for (int i = 0; i < m; ++i) {
        double sum = 0, bound = 0;
        for (int k = 0; k < cols; ++k) {
          const int block = k / kQuantBlock * kQuantBlock;
          const double value = x[i * cols + k];
          const double weight = weights[k];
          sum += value * weight;
          // Half a unit of each that was rounded, and what fp32 adds; a unit
          // of a weight may be 2^-7 larger, as its scale is a bfloat16.
          const double x_error = LargestOf(&x[i * cols + block]) / limit * 0.51;
          const double w_error =
              plain ? LargestOf(&weights[block]) / limit * 0.51 : 0;
          bound += std::abs(weight) * x_error + std::abs(value) * w_error +
                   x_error * w_error +
                   std::abs(value * weight) * cols * 0x1p-24;
        }
        EXPECT_NEAR(y[i * out + j], sum, bound) << DTypeName(type);
      }
    }
  }
}

TEST_F(FastConformanceTest, WhatIsNotFiniteSpoilsItsOwnRowOnly) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (DType type : {DType::kQ8_0, DType::kQ4_1, DType::kF32}) {
    for (float bad : {std::nanf(""), infinity, -infinity}) {
      const int cols = 96, out = 40, m = 7;
      const PackedMatrix w = Weights(type, out, cols, 1);
      std::vector<float> x = Normal(m * cols);
      x[3 * cols + 50] = bad;
      std::vector<float> y(m * out);
      for (const Backend& backend : backends_) {
        backend.ops->Gemm(w, x.data(), cols, m, y.data(), out);
        for (int i = 0; i < m * out; ++i) {
          EXPECT_EQ(std::isnan(y[i]), i / out == 3)
              << DTypeName(type) << ": " << backend.name;
        }
      }
    }
  }
}

TEST_F(FastConformanceTest, RowsOfZerosGiveZeros) {
  const int cols = 64, out = 20;
  for (DType type : {DType::kQ8_0, DType::kQ4_1, DType::kBF16}) {
    const PackedMatrix w = Weights(type, out, cols, 1);
    // Zeros, and what is too small to divide by.
    for (float value : {0.0f, -0.0f, 1e-31f, 1e-40f}) {
      const std::vector<float> x(cols, value);
      const std::vector<float> y = ExpectSameBits(
          out, DTypeName(type),
          [&](Ops& ops, float* y) { ops.Gemm(w, x.data(), cols, 1, y, out); });
      for (const float sum : y) EXPECT_EQ(sum, 0);
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
