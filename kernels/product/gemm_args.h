#pragma once

#include <cstddef>

#include "kernels/weights/packed_matrix.h"

namespace lockstep::kernels {

// The strict product of a range of panels: y[i, row_begin + j] for every row i
// of x.
struct GemmArgs {
  const PackedMatrix::Segment* segment;
  int cols;
  int slice_cols;
  int panel_begin;
  int panel_end;
  const float* x;  // [rows, cols]
  ptrdiff_t x_stride;
  int rows;
  float* y;  // [rows, all output columns of the matrix]
  ptrdiff_t y_stride;
};

}  // namespace lockstep::kernels
