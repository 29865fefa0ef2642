#include "kernels/packed_matrix.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/packed_format.h"

namespace lockstep::kernels {
namespace {

constexpr uint32_t kSeed = 7;

// Stored rows whose fp16 and fp32 factors are finite.
std::vector<uint8_t> RandomRows(DType type, int rows, int64_t cols) {
  std::mt19937 random(kSeed);
  std::vector<uint8_t> bytes(rows * RowBytes(type, cols));
  for (uint8_t& byte : bytes) byte = random() & 0x3f;
  return bytes;
}

float WeightAt(const PackedMatrix& matrix, int row, int col) {
  for (const PackedMatrix::Segment& s : matrix.segments()) {
    const int i = row - s.row_begin;
    if (i < 0 || i >= s.rows) continue;
    return PackedValue(s.type, s.data + i / kPanelRows * s.panel_bytes,
                       i % kPanelRows, col);
  }
  ADD_FAILURE() << "no row " << row;
  return 0;
}

class PackedMatrixTest : public testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(Types, PackedMatrixTest,
                         testing::Values(DType::kF32, DType::kF16, DType::kBF16,
                                         DType::kQ8_0, DType::kQ4_0,
                                         DType::kQ4_1, DType::kQ6_K),
                         [](const auto& info) {
                           return DTypeName(info.param);
                         });

TEST_P(PackedMatrixTest, HoldsTheChosenColumnsOfTheRows) {
  const DType type = GetParam();
  const int block = BlockValues(type);
  const int stored_cols = 5 * block, col_begin = 2 * block, cols = 3 * block;
  const int rows = 21;
  const size_t row_bytes = RowBytes(type, stored_cols);
  const std::vector<uint8_t> source = RandomRows(type, rows, stored_cols);
  PackedMatrix matrix(cols, block);
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
      EXPECT_EQ(PackedValue(type, segment.data + segment.panel_bytes, row, col),
                0);
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
