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
#include "kernels/product/quantized_rows.h"
#include "kernels/product_conformance.h"
#include "kernels/simd/gate.h"
#include "kernels/weights/arithmetic.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_format.h"
#include "kernels/weights/packed_matrix.h"
#include "kernels/weights/random_rows.h"

namespace lockstep::kernels {
namespace {

class FastConformanceTest : public ProductConformanceTest {
 protected:
  PackedMatrix Weights(DType type, int out, int cols, int slices) {
    return ProductConformanceTest::Weights(type, out, cols, slices,
                                           Arithmetic::kFast);
  }
};

TEST_F(FastConformanceTest, ProductsHaveTheSameBitsEverywhere) {
  for (DType type : kProductTypes) {
    for (const ProductShape& shape : kProductShapes) {
      const int cols = shape.ColsOf(type);
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

TEST_F(FastConformanceTest, GatedProductsAreTheGateTimesUp) {
  for (DType type : kProductTypes) {
    for (int dim : {5, 40, 96}) {
      const int cols = ProductShape{dim, 4, 1}.ColsOf(type);
      PackedMatrix w(cols, cols, Arithmetic::kFast);
      AddRows(type, dim, &w);
      AddRows(type, dim, &w);
      for (int m : {1, 4, 8}) {
        ExpectGateTimesUp(w, Gate::kSilu, m, DTypeName(type));
        ExpectGateTimesUp(w, Gate::kGeluTanh, m, DTypeName(type));
      }
    }
  }
}

TEST_F(FastConformanceTest, GateAndUpMayDifferInType) {
  const int cols = 256, dim = 20, m = 5;
  PackedMatrix w(cols, cols, Arithmetic::kFast);
  AddRows(DType::kQ4_K, dim, &w);
  AddRows(DType::kQ6_K, dim, &w);
  const std::vector<float> x = Normal(m * cols, 0.1f);
  std::vector<float> scratch(m * 2 * dim);
  ExpectSameBits(m * dim, "Q4_K, Q6_K", [&](Ops& ops, float* y) {
    ops.GatedGemm(w, Gate::kSilu, x.data(), cols, m, scratch.data(), y, dim);
  });
}

TEST_F(FastConformanceTest, ProductOfManyRowsIsThatOfEachRow) {
  for (DType type : kProductTypes) {
    // More than two of the blocks of rows that the second-level cache holds.
    const int cols = BlockValues(type) == 1 ? 600 : 1024;
    ExpectManyRowsGiveThatOfEach(Weights(type, /*out=*/50, cols, /*slices=*/2),
                                 /*rows=*/517, DTypeName(type));
  }
}

TEST_F(FastConformanceTest, MixedTypesFillEachColumn) {
  const int cols = 256;
  PackedMatrix w(cols, cols, Arithmetic::kFast);
  for (DType type : kProductTypes) {
    AddRows(type, 3 + 7 * static_cast<int>(w.segments().size()), &w);
  }
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
  for (DType type : kProductTypes) {
    const bool plain =
        PackedTypeOf(type, Arithmetic::kFast) == PackedType::kInt16;
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
