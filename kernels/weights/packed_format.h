#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/weights/arithmetic.h"
#include "kernels/weights/dtype.h"

namespace lockstep::kernels {

// How weights lie in a packed matrix: those of quantized types keep their
// integers and scales (Q5_0 and IQ4_NL as Q8_0 does, Q3_K as Q6_K, IQ4_XS and
// MXFP4 as Q8_F), plain ones are kept too for strict arithmetic and become
// kInt16 for fast; so does what else there is, after it was decoded.
enum class PackedType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kInt16,
  kQ4_Z,
  kQ8_F,
  kQ5_1,
  kQ2_K,
};

inline constexpr int kNumPackedTypes = 14;

PackedType PackedTypeOf(DType type, Arithmetic arithmetic);

// How a panel of 16 weight rows lies in memory, the same for every instruction
// set and both kinds of arithmetic. A panel is slice after slice (see
// PackedMatrix), a slice group after group of columns, a group a header and
// blocks of 32 columns; what belongs to the 16 rows lies side by side, as
// vectors want it. Quad g of a block is its columns 4·g to 4·g + 3.
//
//   type   columns  bytes  a group is
//   F32         1     64   float w[16]
//   F16, BF16   1     32   uint16 w[16]
//   Q8_0       32    544   fp16 d[16]; uint8 q[8][16][4], quad by quad: the
//                          stored value + 128
//   Q4_0       32    288   fp16 d[16]; nibbles[4][16]
//   Q4_1       32    320   fp16 d[16]; fp16 m[16]; nibbles[4][16]
//   Q4_K      256   2368   fp16 d[16]; fp16 dmin[16]; 8 blocks of 288 bytes:
//                            uint8 scale[16]; uint8 min[16]; nibbles[4][16]
//   Q5_K      256   2880   the same, but blocks of 352 bytes:
//                            … nibbles[4][16]; bits[16]
//   Q6_K      256   3360   fp16 d[16]; 8 blocks of 416 bytes:
//                            int8 scale[2][16], of columns 0-15 and 16-31;
//                            nibbles[4][16]; pairs[2][16]
//   Int16      32   1056   bf16 scale[16]; int16 q[16][16][2]: [n] is columns
//                          2·n and 2·n + 1.                    w ≈ scale·q
//   Q4_Z       32    304   fp16 d[16]; uint8 zero[16]; nibbles[4][16]
//   Q8_F       32    576   float d[16]; uint8 q[8][16][4], as Q8_0
//   Q5_1       32    384   fp16 d[16]; fp16 m[16]; nibbles[4][16]; bits[16]
//   Q2_K      256   1600   fp16 d[16]; fp16 dmin[16]; 8 blocks of 192 bytes:
//                            uint8 scale[2][16]; uint8 min[2][16], of columns
//                            0-15 and 16-31; pairs[2][16], which are all bits
//
// nibbles, bits and pairs are uint32 that hold the integers of stored types
// before an offset (8, 32) is taken off:
// - nibbles[h][row]: byte j has the low four bits of column 8·h + j in its low
//   half, of column 8·h + 4 + j in its high half: word & 0x0f0f0f0f is quad
//   2·h, word >> 4 & 0x0f0f0f0f quad 2·h + 1.
// - bits[row]: word >> g & 0x01010101 are the fifth bits of quad g.
// - pairs[h][row]: word >> 2·n & 0x03030303 are the upper two bits of quad
//   4·h + n.
inline constexpr int kPanelRows = 16;

struct PackedFormat {
  int group_cols;
  int group_bytes;
  int header_bytes;  // where the first block, or its integers, start

  // Of a block of 32 columns. REQUIRES: a type that is not plain.
  constexpr int block_bytes() const {
    return (group_bytes - header_bytes) / (group_cols / 32);
  }
};

inline constexpr PackedFormat kPackedFormats[kNumPackedTypes] = {
    {1, 64, 0},      {1, 32, 0},      {1, 32, 0},      {32, 544, 32},
    {32, 288, 32},   {32, 320, 64},   {256, 2368, 64}, {256, 2880, 64},
    {256, 3360, 32}, {32, 1056, 32},  {32, 304, 48},   {32, 576, 64},
    {32, 384, 64},   {256, 1600, 64},
};

inline constexpr PackedFormat FormatOfPacked(PackedType type) {
  return kPackedFormats[static_cast<uint8_t>(type)];
}

// Bytes of `cols` columns of a slice, from its start: what a slice takes, and
// where its group that begins at column `cols` lies. The last group of a slice
// of kInt16 may be short; it is filled up with zeros.
inline constexpr size_t SliceBytes(PackedType type, int cols) {
  const PackedFormat format = FormatOfPacked(type);
  return static_cast<size_t>((cols + format.group_cols - 1) /
                             format.group_cols) *
         format.group_bytes;
}

// A weight of a type that keeps integers: w = scale·quant + min.
struct PackedWeight {
  int quant;  // the offset (128, 8, 32) is taken off
  float scale;
  float min;  // 0 but for Q4_1, Q4_K, Q5_K, Q4_Z, Q5_1 and Q2_K
};

// Column `col` of a slice, of the panel's row `row`. Slow: the oracle of the
// fast decoders. REQUIRES: a type that is not plain.
PackedWeight UnpackWeight(PackedType type, const uint8_t* slice, int row,
                          int col);

// The same decoded, of any type.
float PackedValue(PackedType type, const uint8_t* slice, int row, int col);

}  // namespace lockstep::kernels
