#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_format.h"

namespace lockstep::kernels {

// Rows of a weight tensor as stored, each `row_bytes` after the one before.
struct StoredRows {
  DType type;
  const uint8_t* first;
  size_t row_bytes;
  int count;
};

// Writes all of a panel (packed_format.h): `cols` columns in slices of
// `slice_cols`, of 1 to 16 rows; rows that are not there are zeros. As they
// come, but for plain rows that are packed as kInt16, block by block of 32
// columns (fewer at the end of a slice):
//
//   scale = max|w| / 8191 in fp32, then up to the next bfloat16
//   q = w·(1/scale) in fp32, to the nearest integer, ties to even
//
// so |q| <= 8191 and |w - scale·q| <= (1/2 + 2^-10)·scale, where 2^-10 is what
// fp32 may add. A block of magnitudes below 1e-30 is zero; in one that holds an
// infinity or NaN, scale is NaN.
//
// REQUIRES: type is PackedTypeOf(rows.type, …), cols % slice_cols == 0, and
// slice_cols is a multiple of rows.type's block.
void PackPanel(PackedType type, const StoredRows& rows, int cols,
               int slice_cols, uint8_t* panel);

}  // namespace lockstep::kernels
