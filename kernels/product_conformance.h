#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ops_conformance.h"
#include "kernels/simd/gate.h"
#include "kernels/weights/arithmetic.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_matrix.h"
#include "kernels/weights/random_rows.h"

namespace lockstep::kernels {

inline constexpr DType kProductTypes[] = {
    DType::kF32,   DType::kF16,  DType::kBF16, DType::kQ8_0,   DType::kQ4_0,
    DType::kQ4_1,  DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,   DType::kQ5_0,
    DType::kQ5_1,  DType::kQ2_K, DType::kQ3_K, DType::kIQ4_NL, DType::kIQ4_XS,
    DType::kMXFP4, DType::kQ4_Z, DType::kQ8_F};

struct ProductShape {
  int out;     // output columns
  int blocks;  // K in blocks of the type (of 9 columns for plain types)
  int slices;

  int ColsOf(DType type) const {
    return blocks * (BlockValues(type) == 1 ? 9 : BlockValues(type));
  }
};

// Kinds of tail: part of a panel, odd panels, K of one block, slices that are
// no power of two, K beyond the cache block of 128; for plain types slices that
// end inside a block of 32 columns.
inline constexpr ProductShape kProductShapes[] = {
    {1, 1, 1},  {15, 2, 2}, {16, 3, 3},   {17, 5, 5},
    {33, 6, 1}, {64, 8, 8}, {100, 14, 7}, {47, 15, 15},
};

// What holds of products in either arithmetic.
class ProductConformanceTest : public OpsConformanceTest {
 protected:
  // Random rows, below those that are there.
  void AddRows(DType type, int out, PackedMatrix* w) {
    const std::vector<uint8_t> rows = RandomRows(type, out, w->cols(), random_);
    w->AddRows(type, out, rows.data(), RowBytes(type, w->cols()), 0);
  }

  PackedMatrix Weights(DType type, int out, int cols, int slices,
                       Arithmetic arithmetic) {
    PackedMatrix w(cols, cols / slices, arithmetic);
    AddRows(type, out, &w);
    return w;
  }

  // On every instruction set but the reference.
  void ExpectManyRowsGiveThatOfEach(const PackedMatrix& w, int rows,
                                    const std::string& what) {
    const int cols = w.cols(), out = w.rows();
    const std::vector<float> x = Normal(rows * cols);
    for (const Backend& backend : backends_) {
      if (backend.name.find("reference") == 0) continue;
      std::vector<float> together(rows * out), alone(rows * out);
      backend.ops->Gemm(w, x.data(), cols, rows, together.data(), out);
      for (int row = 0; row < rows; ++row) {
        backend.ops->Gemm(w, &x[row * cols], cols, 1, &alone[row * out], out);
      }
      EXPECT_EQ(FirstDifference(together, alone), -1)
          << what << ": " << backend.name;
    }
  }

  void ExpectGateTimesUp(const PackedMatrix& gate_up, Gate gate, int rows,
                         const std::string& what) {
    const int cols = gate_up.cols(), dim = gate_up.rows() / 2;
    const std::vector<float> x = Normal(rows * cols, 0.1f);
    std::vector<float> scratch(rows * 2 * dim), apart(rows * dim);
    const std::vector<float> gated =
        ExpectSameBits(rows * dim, what, [&](Ops& ops, float* y) {
          ops.GatedGemm(gate_up, gate, x.data(), cols, rows, scratch.data(), y,
                        dim);
        });
    reference_.ops->Gemm(gate_up, x.data(), cols, rows, scratch.data(),
                         2 * dim);
    reference_.ops->GatedMul(scratch.data(), gate, 2 * dim, rows, dim,
                             apart.data(), dim);
    EXPECT_EQ(FirstDifference(gated, apart), -1) << what;
  }
};

}  // namespace lockstep::kernels
