#pragma once

#include <cstdint>

#include "kernels/cuda/device.h"

// Value i of a block of weights, as kernels/weights/dtype.h writes it down.
namespace lockstep::cuda {

// IEEE binary16, exact.
__device__ inline float HalfAt(const uint8_t* bytes) {
  const uint32_t half = *reinterpret_cast<const uint16_t*>(bytes);
  const uint32_t sign = (half & 0x8000) << 16, magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) {  // infinity, NaN
    return __uint_as_float(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  }
  // The bits moved into place read as value·2^-112, also when subnormal.
  const float value = __uint_as_float(magnitude << 13) * 0x1p112f;
  return __uint_as_float(sign | __float_as_uint(value));
}

// The types without blocks are blocks of one value.
struct F32Value {
  static constexpr int kValues = 1;
  static constexpr int kBytes = 4;

  __device__ static float Value(const uint8_t* value, int /*i*/) {
    return *reinterpret_cast<const float*>(value);
  }
};

struct F16Value {
  static constexpr int kValues = 1;
  static constexpr int kBytes = 2;

  __device__ static float Value(const uint8_t* value, int /*i*/) {
    return HalfAt(value);
  }
};

struct BF16Value {
  static constexpr int kValues = 1;
  static constexpr int kBytes = 2;

  __device__ static float Value(const uint8_t* value, int /*i*/) {
    const uint32_t bits = *reinterpret_cast<const uint16_t*>(value);
    return __uint_as_float(bits << 16);
  }
};

struct Q8_0Block {
  static constexpr int kValues = 32;
  static constexpr int kBytes = 34;

  __device__ static float Value(const uint8_t* block, int i) {
    return HalfAt(block) * static_cast<int8_t>(block[2 + i]);
  }
};

struct Q4_0Block {
  static constexpr int kValues = 32;
  static constexpr int kBytes = 18;

  __device__ static float Value(const uint8_t* block, int i) {
    const int byte = block[2 + i % 16];
    const int nibble = i < 16 ? byte & 15 : byte >> 4;
    return HalfAt(block) * static_cast<float>(nibble - 8);
  }
};

struct Q4_KBlock {
  static constexpr int kValues = 256;
  static constexpr int kBytes = 144;

  __device__ static float Value(const uint8_t* block, int i) {
    const int run = i / 32;
    const uint8_t* packed = block + 4;
    int scale = 0, min = 0;  // six bits each: see kernels::UnpackScales6
    if (run < 4) {
      scale = packed[run] & 63;
      min = packed[4 + run] & 63;
    } else {
      scale = (packed[4 + run] & 15) | packed[run - 4] >> 6 << 4;
      min = packed[4 + run] >> 4 | packed[run] >> 6 << 4;
    }
    const int byte = block[16 + run / 2 * 32 + i % 32];
    const int nibble = run % 2 == 0 ? byte & 15 : byte >> 4;
    return fmaf(HalfAt(block) * scale, static_cast<float>(nibble),
                -(HalfAt(block + 2) * min));
  }
};

}  // namespace lockstep::cuda
