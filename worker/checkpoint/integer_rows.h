#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/weights/dtype.h"
#include "worker/checkpoint/packed_integers.h"
#include "worker/checkpoint/scale_grid.h"
#include "worker/checkpoint/tensor_source.h"

namespace lockstep {

// A matrix of integers in groups of columns that share a scale and a zero
// point:
//
//   w[row, col] = scale[row, group]·(q[row, col] - zero[row, group])
struct IntegerMatrix {
  int64_t rows = 0;
  int64_t cols = 0;
  PackedIntegers weights = {};
  ScaleGrid scales = {};
  // [row, group]; absent: they are 2^(bits-1).
  std::optional<PackedIntegers> zeros = {};
  int zero_offset = 0;     // added to these, without carry
  int64_t group_cols = 0;  // columns of a group, counted from the first
  // Or the group of each column, where they are in no order.
  std::vector<int32_t> group_of = {};
  std::string format = {};

  int64_t Group(int64_t col) const {
    return group_of.empty() ? col / group_cols : group_of[col];
  }
  int Zero(int64_t row, int64_t group) const {
    if (!zeros.has_value()) return 1 << (weights.bits - 1);
    return (zeros->At(row, group) + zero_offset) & weights.most();
  }
};

// Its rows in the smallest type that holds them:
//
//   Q4_0  4 bits, zeros of 8; scales that are not fp16 (BF16) are rounded to it
//   Q4_Z  4 bits, any zeros; the same
//   Q8_0  8 bits, zeros of 128, scales in F16
//   Q8_F  8 bits, zeros of 128, other scales
//   F32   all else: groups that are not whole blocks of 32 columns or in no
//         order, 8 bits with other zeros, 4 bits with scales in F32
//
// A rounded scale differs where it is below 2^-14, by 2^-25 at most, so that a
// weight differs by less than 2^-21.
class IntegerRows final : public RowReader {
 public:
  // Reads all zeros once.
  explicit IntegerRows(IntegerMatrix matrix);

  kernels::DType type() const { return type_; }

  void Read(const TensorPart& part, uint8_t* out) const override;
  std::string format() const override { return matrix_.format; }

 private:
  void WriteBlock(int64_t row, int64_t col, uint8_t* out) const;
  void WriteFloats(int64_t row, const TensorPart& part, float* out) const;

  const IntegerMatrix matrix_;
  const kernels::DType type_;
};

}  // namespace lockstep
