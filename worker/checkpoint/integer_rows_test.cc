#include "worker/checkpoint/integer_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "kernels/weights/dtype.h"

namespace lockstep {
namespace {

using kernels::DType;

constexpr int64_t kRows = 24, kCols = 128;

// Integers, zeros and scales as numbers, and packed as a checkpoint may have
// them: words along the columns, zeros along the rows, scales row by row.
struct Case {
  int bits;
  int64_t group_cols;
  bool zeros_in_the_middle;
  DType scale_type;
  bool shuffled_groups = false;
};

class Packed {
 public:
  explicit Packed(const Case& c) : case_(c) {
    const int64_t groups = (kCols + c.group_cols - 1) / c.group_cols;
    Draw(kRows * kCols, 1 << c.bits, &quants_);
    Draw(kRows * groups, 1 << c.bits, &zeros_);
    if (c.zeros_in_the_middle) {
      zeros_.assign(zeros_.size(), 1 << (c.bits - 1));
    }
    for (int64_t i = 0; i < kRows * groups; ++i) {
      scales_.push_back(0x1p-10f * (1 + random_() % 128));
    }
    for (int64_t col = 0; col < kCols; ++col) {
      group_of_.push_back(col / c.group_cols);
    }
    if (c.shuffled_groups) {
      std::shuffle(group_of_.begin(), group_of_.end(), random_);
    }
    Pack(groups);
  }

  IntegerMatrix Matrix() const {
    const int lanes_log2 = case_.bits == 4 ? 3 : 2;
    const int64_t groups = (kCols + case_.group_cols - 1) / case_.group_cols;
    IntegerMatrix matrix = {.rows = kRows, .cols = kCols};
    matrix.weights = {.words = packed_quants_.data(),
                      .bits = case_.bits,
                      .lanes_log2 = lanes_log2,
                      .row_stride = kCols >> lanes_log2,
                      .col_stride = 1};
    matrix.zeros = {.words = packed_zeros_.data(),
                    .bits = case_.bits,
                    .lanes_log2 = lanes_log2,
                    .lanes_are_columns = false,
                    .row_stride = groups,
                    .col_stride = 1};
    matrix.scales = {.type = case_.scale_type,
                     .values = packed_scales_.data(),
                     .row_stride = groups,
                     .group_stride = 1};
    matrix.group_cols = case_.group_cols;
    if (case_.shuffled_groups) matrix.group_of = group_of_;
    return matrix;
  }

  float Value(int64_t row, int64_t col) const {
    const int64_t groups = scales_.size() / kRows;
    const int64_t at = row * groups + group_of_[col];
    return scales_[at] * (quants_[row * kCols + col] - zeros_[at]);
  }

 private:
  void Draw(int64_t count, int below, std::vector<int>* out) {
    for (int64_t i = 0; i < count; ++i) out->push_back(random_() % below);
  }

  void Pack(int64_t groups) {
    packed_quants_.resize(kRows * kCols * case_.bits / 8);
    packed_zeros_.resize(kRows * groups * case_.bits / 8);
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      packed_quants_[i * case_.bits / 8] |= quants_[i] << (i * case_.bits % 8);
    }
    const int64_t lanes = 32 / case_.bits;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t group = 0; group < groups; ++group) {
        const int64_t bit =
            (row / lanes * groups + group) * 32 + row % lanes * case_.bits;
        packed_zeros_[bit / 8] |= zeros_[row * groups + group] << (bit % 8);
      }
    }
    for (const float scale : scales_) {
      uint32_t bits;
      std::memcpy(&bits, &scale, sizeof(bits));
      uint16_t half = bits >> 16;
      if (case_.scale_type == DType::kF16) half = kernels::FloatToHalf(scale);
      const auto* bytes = case_.scale_type == DType::kF32
                              ? reinterpret_cast<const uint8_t*>(&scale)
                              : reinterpret_cast<const uint8_t*>(&half);
      packed_scales_.insert(packed_scales_.end(), bytes,
                            bytes + kernels::BlockBytes(case_.scale_type));
    }
  }

  const Case case_;
  std::mt19937 random_{5};
  std::vector<int> quants_, zeros_;
  std::vector<float> scales_;  // exact in each type
  std::vector<int32_t> group_of_;
  std::vector<uint8_t> packed_quants_, packed_zeros_, packed_scales_;
};

TEST(IntegerRows, HoldsTheValuesInTheSmallestTypeThatCan) {
  const struct {
    Case what;
    DType type;
  } cases[] = {
      {{4, 32, true, DType::kF16}, DType::kQ4_0},
      {{4, kCols, true, DType::kBF16}, DType::kQ4_0},
      {{4, 64, false, DType::kF16}, DType::kQ4_Z},
      {{4, 64, true, DType::kF32}, DType::kF32},
      {{4, 16, true, DType::kF16}, DType::kF32},
      {{4, 48, false, DType::kF16}, DType::kF32},
      {{4, 32, true, DType::kF16, true}, DType::kF32},
      {{8, 64, true, DType::kF16}, DType::kQ8_0},
      {{8, 128, true, DType::kBF16}, DType::kQ8_F},
      {{8, 32, true, DType::kF32}, DType::kQ8_F},
      {{8, 32, false, DType::kF16}, DType::kF32},
      {{8, 32, true, DType::kF16, true}, DType::kF32},
  };
  for (const auto& [what, type] : cases) {
    SCOPED_TRACE(testing::Message()
                 << what.bits << " bits, groups of " << what.group_cols);
    const Packed packed(what);
    const IntegerRows rows(packed.Matrix());
    ASSERT_STREQ(kernels::DTypeName(rows.type()), kernels::DTypeName(type));
    const TensorPart part = {
        .row_begin = 3, .rows = 19, .col_begin = 32, .cols = 64};
    const size_t row_bytes = kernels::RowBytes(type, part.cols);
    std::vector<uint8_t> bytes(part.rows * row_bytes);
    rows.Read(part, bytes.data());
    std::vector<float> values(part.cols);
    for (int64_t i = 0; i < part.rows; ++i) {
      kernels::DecodeRow(type, &bytes[i * row_bytes], part.cols, values.data());
      for (int64_t j = 0; j < part.cols; ++j) {
        ASSERT_EQ(values[j], packed.Value(3 + i, 32 + j)) << i << ", " << j;
      }
    }
  }
}

TEST(IntegerRows, AScaleThatIsNoHalfIsRoundedToOne) {
  const uint8_t quants[16] = {};  // all -8
  const float tiny = 0x1.fp-16f;  // five bits below the least normal half
  uint32_t bits;
  std::memcpy(&bits, &tiny, sizeof(bits));
  const uint16_t scale = bits >> 16;
  IntegerMatrix matrix = {.rows = 1, .cols = 32};
  matrix.weights = {.words = quants, .row_stride = 4, .col_stride = 1};
  matrix.scales = {.type = DType::kBF16,
                   .values = reinterpret_cast<const uint8_t*>(&scale),
                   .group_stride = 1};
  matrix.group_cols = 32;
  const IntegerRows rows(matrix);
  uint8_t block[18];
  rows.Read({.rows = 1, .cols = 32}, block);
  float values[32];
  kernels::DecodeRow(rows.type(), block, 32, values);
  EXPECT_NEAR(values[0], -8 * tiny, 0x1p-21);
}

}  // namespace
}  // namespace lockstep
