#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

namespace lockstep::kernels {

// How a panel of 16 weight rows lies in memory, the same for every instruction
// set. Columns come in groups; in a group, the 16 rows' values of one column
// lie side by side:
//
//   type   columns  bytes  a group is
//   F32         1     64   float w[16]
//   F16, BF16   1     32   uint16 w[16]
//   Q8_0       32    544   fp16 d[16]; int8 q[32][16]
//   Q4_0       32    288   fp16 d[16]; nibbles[4][16]
//   Q4_1       32    320   fp16 d[16]; fp16 m[16]; nibbles[4][16]
//   Q6_K       16    320   float scale[16] (= d·scale); int8 q[16][16] (= q-32)
//
// nibbles[g][row] is a uint32 whose nibble i, from the low end, is q of column
// 8·g + i.
inline constexpr int kPanelRows = 16;

struct PackedFormat {
  int group_cols;
  int group_bytes;
  int quants;  // where the integers start in a group
};

inline constexpr PackedFormat kPackedFormats[kNumDTypes] = {
    {1, 64, 0},    {1, 32, 0},    {1, 32, 0},    {32, 544, 32},
    {32, 288, 32}, {32, 320, 64}, {16, 320, 64},
};

inline constexpr PackedFormat FormatOfPacked(DType type) {
  return kPackedFormats[static_cast<uint8_t>(type)];
}

// Bytes of a panel of `cols` columns.
size_t PanelBytes(DType type, int cols);

// Fills row `row` (0 to 15) of a panel that was zero from a row as stored.
void PackRow(DType type, const uint8_t* source, int cols, int row,
             uint8_t* panel);

// One weight, decoded from a panel. Slow: the oracle of the fast decoders.
float PackedValue(DType type, const uint8_t* panel, int row, int col);

}  // namespace lockstep::kernels
