#include "worker/checkpoint/integer_rows.h"

#include <cstring>
#include <utility>

namespace lockstep {
namespace {

using kernels::DType;

constexpr int kBlockCols = 32;

bool ZerosAreInTheMiddle(const IntegerMatrix& matrix) {
  if (!matrix.zeros.has_value()) return true;
  const int64_t groups = matrix.Group(matrix.cols - 1) + 1;
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t group = 0; group < groups; ++group) {
      if (matrix.Zero(row, group) != 1 << (matrix.weights.bits - 1)) {
        return false;
      }
    }
  }
  return true;
}

DType TypeOf(const IntegerMatrix& matrix) {
  const bool one_group = matrix.group_cols >= matrix.cols;
  const bool groups_are_blocks =
      matrix.group_of.empty() && matrix.cols % kBlockCols == 0 &&
      (one_group || matrix.group_cols % kBlockCols == 0);
  if (!groups_are_blocks) return DType::kF32;
  const bool in_the_middle = ZerosAreInTheMiddle(matrix);
  if (matrix.weights.bits == 8) {
    if (!in_the_middle) return DType::kF32;
    return matrix.scales.type == DType::kF16 ? DType::kQ8_0 : DType::kQ8_F;
  }
  if (matrix.scales.type == DType::kF32) return DType::kF32;
  return in_the_middle ? DType::kQ4_0 : DType::kQ4_Z;
}

template <typename T>
uint8_t* Put(T value, uint8_t* out) {
  std::memcpy(out, &value, sizeof(value));
  return out + sizeof(value);
}

// Value i lies in the low half of byte i, value i + 16 in the high one.
void PutNibbles(const uint8_t* quants, uint8_t* out) {
  for (int i = 0; i < kBlockCols / 2; ++i) {
    out[i] = quants[i] | quants[i + kBlockCols / 2] << 4;
  }
}

void PutBytes(const uint8_t* quants, uint8_t* out) {
  for (int i = 0; i < kBlockCols; ++i) out[i] = quants[i] ^ 0x80;
}

}  // namespace

IntegerRows::IntegerRows(IntegerMatrix matrix)
    : matrix_(std::move(matrix)), type_(TypeOf(matrix_)) {}

void IntegerRows::Read(const TensorPart& part, uint8_t* out) const {
  for (int64_t row = part.row_begin; row < part.row_begin + part.rows; ++row) {
    if (type_ == DType::kF32) {
      WriteFloats(row, part, reinterpret_cast<float*>(out));
      out += part.cols * sizeof(float);
      continue;
    }
    for (int64_t col = 0; col < part.cols; col += kBlockCols) {
      WriteBlock(row, part.col_begin + col, out);
      out += kernels::BlockBytes(type_);
    }
  }
}

void IntegerRows::WriteBlock(int64_t row, int64_t col, uint8_t* out) const {
  uint8_t quants[kBlockCols];
  for (int i = 0; i < kBlockCols; ++i) {
    quants[i] = static_cast<uint8_t>(matrix_.weights.At(row, col + i));
  }
  const int64_t group = matrix_.Group(col);
  const float scale = matrix_.scales.At(row, group);
  if (type_ == DType::kQ8_F) return PutBytes(quants, Put(scale, out));
  out = Put(kernels::FloatToHalf(scale), out);
  if (type_ == DType::kQ8_0) return PutBytes(quants, out);
  if (type_ == DType::kQ4_Z) {
    out = Put(static_cast<uint8_t>(matrix_.Zero(row, group)), out);
  }
  PutNibbles(quants, out);
}

void IntegerRows::WriteFloats(int64_t row, const TensorPart& part,
                              float* out) const {
  int64_t group = -1;
  float scale = 0;
  int zero = 0;
  for (int64_t i = 0; i < part.cols; ++i) {
    const int64_t col = part.col_begin + i;
    if (matrix_.Group(col) != group) {
      group = matrix_.Group(col);
      scale = matrix_.scales.At(row, group);
      zero = matrix_.Zero(row, group);
    }
    out[i] = scale * static_cast<float>(matrix_.weights.At(row, col) - zero);
  }
}

}  // namespace lockstep
