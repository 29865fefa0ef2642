#pragma once

#include <cstdint>

#include "kernels/weights/dtype.h"

namespace lockstep {

// The scales of a matrix as a checkpoint has them: one for each group of
// columns, of one row or of several. A view; the numbers are mapped.
struct ScaleGrid {
  kernels::DType type = kernels::DType::kF32;  // F32, F16 or BF16
  const uint8_t* values = nullptr;
  int64_t rows_each = 1;     // rows of the matrix that share a scale
  int64_t row_stride = 0;    // numbers from one of these to the next
  int64_t group_stride = 0;  // and from a group to the next

  float At(int64_t row, int64_t group) const {
    const int64_t index = row / rows_each * row_stride + group * group_stride;
    float scale;
    kernels::DecodeRow(type, values + kernels::RowBytes(type, index), 1,
                       &scale);
    return scale;
  }
};

}  // namespace lockstep
