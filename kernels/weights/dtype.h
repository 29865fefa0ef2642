#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::kernels {

// How a tensor is stored. The quantized types are ggml's, but for the last two
// of them; a row is a whole number of blocks, each decoded as written here.
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,  // 32 values: fp16 d, int8 q[32].                w = d·q
  kQ4_0,  // 32 values: fp16 d, 16 bytes of nibbles.       w = d·(q - 8)
  kQ4_1,  // 32 values: fp16 d, fp16 m, 16 bytes.          w = d·q + m
  // 256 values: fp16 d, fp16 dmin, 6-bit scale and min of each 32 values in 12
  // bytes, nibbles.                              w = d·scale·q - dmin·min
  kQ4_K,
  kQ5_K,  // the same; 5-bit q: 32 bytes of high bits before the nibbles.
  kQ6_K,  // 256 values: 4-bit and 2-bit parts, int8 scales[16], fp16 d.
          //                                         w = d·scale·(q - 32)
  kQ5_0,  // 32 values: fp16 d, 32 high bits, 16 bytes.    w = d·(q - 16)
  kQ5_1,  // 32 values: fp16 d, fp16 m, 32 high bits, …    w = d·q + m
  // 256 values: 4-bit scale and min of each 16 values, 2-bit q, fp16 d and
  // dmin.
  //                                                w = d·scale·q - dmin·min
  kQ2_K,
  kQ3_K,    // 256 values: 32 bytes of high bits, 2-bit parts, 6-bit scales[16],
            // fp16 d.                           w = d·(scale - 32)·(q - 4)
  kIQ4_NL,  // 32 values: fp16 d, nibbles.         w = d·table[nibble]
  kIQ4_XS,  // 256 values: fp16 d, 6-bit scales[8], nibbles.
            //                            w = d·(scale - 32)·table[nibble]
  kMXFP4,  // 32 values: an exponent e, nibbles.  w = 2^(e - 128)·table[nibble]
  // What Hugging Face's quantized checkpoints are read as.
  kQ4_Z,  // 32 values: fp16 d, uint8 zero, 16 bytes of nibbles.
          //                                               w = d·(q - zero)
  kQ8_F,  // 32 values: fp32 d, int8 q[32].                w = d·q
  // Values that others scale: of matrices in parts, never packed as they are.
  kF8_E4M3,  // sign, 4 bits of exponent, 3 of mantissa; no infinities
  kI8,
  kI32,
  kI64,
};

inline constexpr int kNumDTypes = 22;

// Whether weights are floats side by side: F32, F16, BF16.
inline constexpr bool IsPlain(DType type) { return type <= DType::kBF16; }

// Whether a tensor of the type has weights, and not only parts of them.
inline constexpr bool HoldsWeights(DType type) {
  return type < DType::kF8_E4M3;
}

// Values in a block; 1 for types without blocks.
int BlockValues(DType type);

// Bytes of a block.
int BlockBytes(DType type);

// Bytes of a row of `cols` values. REQUIRES: cols % BlockValues(type) == 0.
size_t RowBytes(DType type, int64_t cols);

// "F32", "Q4_1", …
const char* DTypeName(DType type);

// Decodes `cols` values of one row as stored, in fp32; exact but for the one
// rounding where a minimum is added. REQUIRES: cols % BlockValues(type) == 0.
void DecodeRow(DType type, const void* row, int64_t cols, float* out);

// IEEE binary16 and bfloat16 to fp32, exact; signalling NaNs stay as they are.
float HalfToFloat(uint16_t half);
float BFloat16ToFloat(uint16_t bits);

// To the nearest, ties to even; what is too large becomes infinite.
uint16_t FloatToHalf(float value);

}  // namespace lockstep::kernels
