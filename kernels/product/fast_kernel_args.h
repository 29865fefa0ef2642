#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/product/quantized_rows.h"
#include "kernels/simd/gate.h"
#include "kernels/weights/packed_matrix.h"

namespace lockstep::kernels {

// One tile of rows, to be quantized.
struct QuantizeArgs {
  const float* x;  // [rows, cols]
  ptrdiff_t x_stride;
  int rows;  // at most FastKernels::tile_rows
  int cols;
  int slice_cols;
  RowFormat format;
  uint8_t* out;  // quantized_rows.h
};

// The sums of a range of panels for tiles [tile_begin, tile_end) of X.
struct FastGemmArgs {
  const PackedMatrix::Segment* segment;
  int slices;
  int slice_blocks;  // blocks of 32 columns in a slice
  int panel_begin;
  int panel_end;
  const uint8_t* x;  // all tiles
  RowTiles tiles;
  int tile_begin;
  int tile_end;
  float* y;  // [rows, …]; panel 0 writes column 0
  ptrdiff_t y_stride;
  const float* bias;  // added to the sums; that of panel 0, or null
  bool gated;         // y holds what `gate` takes and becomes gate(y)·sum
  Gate gate;
};

}  // namespace lockstep::kernels
