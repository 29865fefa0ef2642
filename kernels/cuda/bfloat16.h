#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_types.h"
#include "kernels/cuda/device.h"

// Kernels compute in fp32, whatever they read and write.
namespace lockstep::cuda {

__device__ inline float ToFloat(float x) { return x; }

__device__ inline float ToFloat(BFloat16 x) {
  return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}

template <typename T>
__device__ T FromFloat(float x);

template <>
__device__ inline float FromFloat<float>(float x) {
  return x;
}

// Nearest, ties to even; a NaN stays one.
template <>
__device__ inline BFloat16 FromFloat<BFloat16>(float x) {
  const uint32_t bits = __float_as_uint(x);
  if (x != x) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

// 16 bytes, which a thread reads or writes at once where they are aligned.
template <typename T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T at[kSize];
};

}  // namespace lockstep::cuda
