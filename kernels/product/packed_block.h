#pragma once

#include <cstdint>

#include "kernels/product/quantized_rows.h"
#include "kernels/weights/packed_format.h"

namespace lockstep::kernels {

// A block of 32 columns of one row of a panel, as the fast product sees it:
// weight i is scale[i / fold_cols]·quant[i] + min[i / fold_cols].
struct PackedBlock {
  int quant[kQuantBlock];  // the offset (128, 8, 32) is taken off
  float scale[2];
  float min[2];
  int fold_cols;  // 32, or 16 of Q2_K and Q6_K: columns that share a scale
  bool has_min;
};

// Block `block` of a slice (packed_format.h), of the panel's row `row`. Slow:
// for the reference. REQUIRES: a type that the fast product takes.
PackedBlock UnpackPackedBlock(PackedType type, const uint8_t* slice, int row,
                              int block);

}  // namespace lockstep::kernels
