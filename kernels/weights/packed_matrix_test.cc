#include "kernels/weights/packed_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/threads/thread_pool.h"
#include "kernels/weights/arithmetic.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_format.h"
#include "kernels/weights/random_rows.h"
#include "kernels/weights/weight_arena.h"

namespace lockstep::kernels {
namespace {

constexpr uint32_t kSeed = 7;

std::vector<uint8_t> RandomRows(DType type, int rows, int cols) {
  std::mt19937 random(kSeed);
  return RandomRows(type, rows, cols, random);
}

// `row` counts padding too where it is the last segment's.
float WeightAt(const PackedMatrix& matrix, int row, int col) {
  const int slice = col / matrix.slice_cols();
  for (const PackedMatrix::Segment& s : matrix.segments()) {
    const int i = row - s.row_begin;
    if (i < 0 || i >= s.panels() * kPanelRows) continue;
    return PackedValue(
        s.type, s.data + i / kPanelRows * s.panel_bytes + slice * s.slice_bytes,
        i % kPanelRows, col % matrix.slice_cols());
  }
  ADD_FAILURE() << "no row " << row;
  return 0;
}

class PackedMatrixTest : public testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(
    Types, PackedMatrixTest,
    testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0,
                    DType::kQ4_0, DType::kQ4_1, DType::kQ4_K, DType::kQ5_K,
                    DType::kQ6_K, DType::kQ5_0, DType::kQ5_1, DType::kQ2_K,
                    DType::kQ3_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4,
                    DType::kQ4_Z, DType::kQ8_F),
    [](const auto& info) { return DTypeName(info.param); });

TEST_P(PackedMatrixTest, HoldsTheChosenColumnsOfTheRows) {
  const DType type = GetParam();
  const int block = BlockValues(type);
  const int stored_cols = 5 * block, col_begin = 2 * block, cols = 3 * block;
  const int rows = 21;
  const size_t row_bytes = RowBytes(type, stored_cols);
  const std::vector<uint8_t> source = RandomRows(type, rows, stored_cols);
  for (int slice_cols : {block, cols}) {
    PackedMatrix matrix(cols, slice_cols);
    matrix.AddRows(type, rows, source.data(), row_bytes, col_begin);
    std::vector<float> expected(stored_cols);
    for (int row = 0; row < rows; ++row) {
      DecodeRow(type, &source[row * row_bytes], stored_cols, expected.data());
      for (int col = 0; col < cols; ++col) {
        EXPECT_EQ(WeightAt(matrix, row, col), expected[col_begin + col])
            << row << ", " << col;
      }
    }
  }
}

TEST_P(PackedMatrixTest, PadsTheLastPanelWithZeros) {
  const DType type = GetParam();
  const int cols = BlockValues(type);
  const std::vector<uint8_t> source = RandomRows(type, 17, cols);
  PackedMatrix matrix(cols, cols);
  matrix.AddRows(type, 17, source.data(), RowBytes(type, cols), 0);
  const PackedMatrix::Segment& segment = matrix.segments()[0];
  ASSERT_EQ(segment.panels(), 2);
  for (int row = 1; row < kPanelRows; ++row) {
    for (int col = 0; col < cols; ++col) {
      EXPECT_EQ(WeightAt(matrix, kPanelRows + row, col), 0);
    }
  }
}

TEST_P(PackedMatrixTest, PanelsStartOnCacheLines) {
  const DType type = GetParam();
  const int cols = BlockValues(type);
  const std::vector<uint8_t> source = RandomRows(type, 1, cols);
  PackedMatrix matrix(cols, cols);
  matrix.AddRows(type, 1, source.data(), RowBytes(type, cols), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(matrix.segments()[0].data) % 64, 0);
}

TEST_P(PackedMatrixTest, ThreadsPackTheSameBytes) {
  const DType type = GetParam();
  const int cols = 2 * BlockValues(type), rows = 16 * 7 + 3;
  const std::vector<uint8_t> source = RandomRows(type, rows, cols);
  ThreadPool pool({.num_threads = 3, .oversubscribed = true});
  for (Arithmetic arithmetic : {Arithmetic::kStrict, Arithmetic::kFast}) {
    PackedMatrix alone(cols, cols, arithmetic),
        together(cols, cols, arithmetic);
    alone.AddRows(type, rows, source.data(), RowBytes(type, cols), 0);
    together.AddRows(type, rows, source.data(), RowBytes(type, cols), 0,
                     {.pool = &pool});
    ASSERT_EQ(alone.bytes(), together.bytes());
    EXPECT_EQ(std::memcmp(alone.segments()[0].data, together.segments()[0].data,
                          alone.bytes()),
              0);
  }
}

TEST_P(PackedMatrixTest, RowsThatAreMadeArePackedAsStoredOnesAre) {
  const DType type = GetParam();
  const int cols = 2 * BlockValues(type), rows = 16 * 3 + 5;
  const size_t row_bytes = RowBytes(type, cols);
  const std::vector<uint8_t> source = RandomRows(type, rows, cols);
  ThreadPool pool({.num_threads = 2, .oversubscribed = true});
  PackedMatrix stored(cols, cols / 2), made(cols, cols / 2);
  stored.AddRows(type, rows, source.data(), row_bytes, 0);
  made.AddRows(type, rows,
               [&](int first, int count, uint8_t* out) {
                 std::memcpy(out, &source[first * row_bytes],
                             count * row_bytes);
               },
               {.pool = &pool});
  ASSERT_EQ(stored.bytes(), made.bytes());
  EXPECT_EQ(std::memcmp(stored.segments()[0].data, made.segments()[0].data,
                        made.bytes()),
            0);
}

// What fast arithmetic makes of plain weights.
class PackedInt16Test : public testing::Test {
 protected:
  // One row of fp32, packed.
  static PackedMatrix Pack(const std::vector<float>& row, int slice_cols) {
    PackedMatrix matrix(row.size(), slice_cols, Arithmetic::kFast);
    matrix.AddRows(DType::kF32, 1, row.data(), row.size() * sizeof(float), 0);
    return matrix;
  }
  static uint16_t ScaleBits(const PackedMatrix& matrix, int block) {
    uint16_t bits;
    std::memcpy(&bits, matrix.segments()[0].data + block * 1056, sizeof(bits));
    return bits;
  }
  static int16_t Quant(const PackedMatrix& matrix, int col) {
    int16_t quant;
    std::memcpy(&quant,
                matrix.segments()[0].data + col / 32 * 1056 + 32 +
                    col % 32 / 2 * 64 + col % 2 * 2,
                sizeof(quant));
    return quant;
  }
};

TEST_F(PackedInt16Test, IsWithinHalfAStepOfTheWeights) {
  RecordProperty("seed", kSeed);
  std::mt19937 random(kSeed);
  std::vector<float> row(32 * 200);
  for (size_t i = 0; i < row.size(); ++i) {
    const float magnitude = std::ldexp(1.0f, i / 32 - 90);
    row[i] = std::normal_distribution<float>(0, magnitude)(random);
  }
  const PackedMatrix matrix = Pack(row, row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    const double scale = BFloat16ToFloat(ScaleBits(matrix, i / 32));
    EXPECT_LE(std::abs(Quant(matrix, i)), 8191);
    EXPECT_EQ(WeightAt(matrix, 0, i), scale * Quant(matrix, i));
    EXPECT_NEAR(scale * Quant(matrix, i), row[i], scale * (0.5 + 0x1p-10));
  }
}

// 8191 is the largest magnitude for a scale that is a bfloat16, and is used.
TEST_F(PackedInt16Test, ScaleIsTheLeastThatReachesTheLargestWeight) {
  std::vector<float> row(96, 0.0f);
  row[3] = -8191 * 0x1p-8f, row[4] = 5 * 0x1p-8f;
  row[5] = 2.5f * 0x1p-8f;                      // ties go to even
  row[32] = std::nextafter(8191 * 3.0f, 1e9f);  // just above: the next bfloat16
  row[64] = std::numeric_limits<float>::max();
  const PackedMatrix matrix = Pack(row, row.size());
  EXPECT_EQ(BFloat16ToFloat(ScaleBits(matrix, 0)), 0x1p-8f);
  EXPECT_EQ(Quant(matrix, 3), -8191);
  EXPECT_EQ(Quant(matrix, 4), 5);
  EXPECT_EQ(Quant(matrix, 5), 2);
  EXPECT_EQ(BFloat16ToFloat(ScaleBits(matrix, 1)), 3.015625f);
  EXPECT_TRUE(std::isfinite(WeightAt(matrix, 0, 64)));
}

TEST_F(PackedInt16Test, BlocksOfTinyWeightsAreZero) {
  std::vector<float> row(64, 0.0f);
  for (int i = 0; i < 32; ++i) row[i] = i % 2 ? 9e-31f : -1e-42f;
  const PackedMatrix matrix = Pack(row, row.size());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(WeightAt(matrix, 0, i), 0);
}

TEST_F(PackedInt16Test, BlocksThatAreNotFiniteAreNaN) {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    std::vector<float> row(96, 1.0f);
    row[40] = bad;
    const PackedMatrix matrix = Pack(row, row.size());
    for (int i = 0; i < 96; ++i) {
      EXPECT_EQ(std::isnan(WeightAt(matrix, 0, i)), i / 32 == 1) << i;
    }
  }
}

// Slices of 43 columns: a block of 32, one of 11 and zeros.
TEST_F(PackedInt16Test, BlocksStartAnewInEachSlice) {
  constexpr int kSliceCols = 43, kSlices = 3, kRows = 17;
  constexpr int kCols = kSlices * kSliceCols;
  for (DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    const std::vector<uint8_t> source = RandomRows(type, kRows, kCols + 5);
    const size_t row_bytes = RowBytes(type, kCols + 5);
    PackedMatrix matrix(kCols, kSliceCols, Arithmetic::kFast);
    matrix.AddRows(type, kRows, source.data(), row_bytes, /*col_begin=*/5);
    const PackedMatrix::Segment& segment = matrix.segments()[0];
    EXPECT_EQ(segment.type, PackedType::kInt16);
    EXPECT_EQ(segment.slice_bytes, 2 * 1056);
    EXPECT_EQ(segment.panel_bytes, kSlices * 2 * 1056);
    std::vector<float> row(kCols + 5);
    for (int r = 0; r < kRows; ++r) {
      DecodeRow(type, &source[r * row_bytes], row.size(), row.data());
      for (int col = 0; col < kCols; ++col) {
        const int begin = col - col % kSliceCols % 32;
        const int end =
            std::min(begin + 32, col / kSliceCols * kSliceCols + 43);
        float most = 0;
        for (int i = begin; i < end; ++i) {
          most = std::max(most, std::abs(row[5 + i]));
        }
        // A scale is a bfloat16: up to 2^-7 more than what 8191 asks for.
        EXPECT_NEAR(WeightAt(matrix, r, col), row[5 + col],
                    most / 8191 * (1 + 0x1p-7) * (0.5 + 0x1p-10));
      }
    }
    for (int slice = 0; slice < kSlices; ++slice) {
      for (int col = kSliceCols; col < 64; ++col) {
        EXPECT_EQ(
            PackedValue(segment.type,
                        segment.data + slice * segment.slice_bytes, 0, col),
            0);
      }
    }
  }
}

TEST_F(PackedInt16Test, QuantizedTypesStayAsTheyAre) {
  for (DType type :
       {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ4_K, DType::kQ5_K,
        DType::kQ6_K, DType::kQ5_0, DType::kQ5_1, DType::kQ2_K, DType::kQ3_K,
        DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4}) {
    EXPECT_EQ(PackedTypeOf(type, Arithmetic::kFast),
              PackedTypeOf(type, Arithmetic::kStrict));
  }
}

TEST(PackedMatrixMemoryTest, MatricesOfAnArenaFollowEachOther) {
  const std::vector<uint8_t> source = RandomRows(DType::kQ4_1, 20, 64);
  WeightArena arena;
  std::vector<PackedMatrix> matrices;
  for (int i = 0; i < 2; ++i) {
    matrices.emplace_back(64, 64).AddRows(DType::kQ4_1, 20, source.data(),
                                          RowBytes(DType::kQ4_1, 64), 0,
                                          {.arena = &arena});
  }
  const PackedMatrix::Segment& first = matrices[0].segments()[0];
  const PackedMatrix::Segment& second = matrices[1].segments()[0];
  EXPECT_EQ(second.data - first.data, matrices[0].bytes());
  EXPECT_EQ(std::memcmp(first.data, second.data, matrices[0].bytes()), 0);
}

TEST(PackedMatrixMemoryTest, LargeMatricesStartOnHugePages) {
  constexpr int kCols = 1024, kRows = 640;
  const std::vector<uint8_t> source(kRows * RowBytes(DType::kF32, kCols));
  PackedMatrix matrix(kCols, kCols);
  matrix.AddRows(DType::kF32, kRows, source.data(), kCols * sizeof(float), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(matrix.segments()[0].data) % (2 << 20),
            0);
}

TEST(PackedMatrixSegmentsTest, FollowEachOtherInTheOutput) {
  PackedMatrix matrix(32, 32);
  const auto add = [&](DType type, int rows) {
    const std::vector<uint8_t> source = RandomRows(type, rows, 32);
    matrix.AddRows(type, rows, source.data(), RowBytes(type, 32), 0);
  };
  add(DType::kQ4_1, 20);
  add(DType::kF32, 0);
  add(DType::kQ8_0, 3);
  EXPECT_EQ(matrix.rows(), 23);
  EXPECT_EQ(matrix.panels(), 3);
  ASSERT_EQ(matrix.segments().size(), 2);
  EXPECT_EQ(matrix.segments()[1].row_begin, 20);
  EXPECT_EQ(matrix.bytes(), 2 * 320 + 544);
}

TEST(PackedMatrixDeathTest, RefusesASliceThatCutsABlock) {
  const std::vector<uint8_t> source = RandomRows(DType::kQ8_0, 1, 96);
  EXPECT_DEATH(
      {
        PackedMatrix matrix(96, 48);
        matrix.AddRows(DType::kQ8_0, 1, source.data(), 102, 0);
      },
      "Q8_0");
}

}  // namespace
}  // namespace lockstep::kernels
