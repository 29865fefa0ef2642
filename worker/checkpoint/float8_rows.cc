#include "worker/checkpoint/float8_rows.h"

#include <algorithm>

#include "kernels/weights/dtype.h"

namespace lockstep {

void Float8Rows::Read(const TensorPart& part, uint8_t* out) const {
  float* values = reinterpret_cast<float*>(out);
  const int64_t end = part.col_begin + part.cols;
  for (int64_t row = part.row_begin; row < part.row_begin + part.rows; ++row) {
    kernels::DecodeRow(kernels::DType::kF8_E4M3,
                       values_ + row * cols_ + part.col_begin, part.cols,
                       values);
    for (int64_t col = part.col_begin; col < end;) {
      const int64_t group = col / group_cols_;
      const float scale = scales_.At(row, group);
      const int64_t group_end = std::min(end, (group + 1) * group_cols_);
      for (; col < group_end; ++col) *values++ *= scale;
    }
  }
}

std::string Float8Rows::format() const {
  return kernels::DTypeName(kernels::DType::kF8_E4M3);
}

}  // namespace lockstep
