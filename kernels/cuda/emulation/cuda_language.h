#pragma once

#ifdef __CUDACC__
#error "nvcc has the real ones: include kernels/cuda/device.h"
#endif

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/emulation/grid.h"

// What kernels use of CUDA's language, on the emulation: the same names with
// the meaning of the CUDA C++ Programming Guide, chapter "C++ Language
// Extensions". Bits of the special functions are the C library's, not a GPU's.

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

// No __shared__: what is static would keep what the last block left, and so
// hide what a block reads before it is written. Kernels use dynamic shared
// memory.

#define threadIdx (::lockstep::emulation::ThreadIndex())
#define blockIdx (::lockstep::emulation::BlockIndex())
#define blockDim (::lockstep::emulation::BlockDim())
#define gridDim (::lockstep::emulation::GridDim())

#define __syncthreads() ::lockstep::emulation::SyncBlock({__FILE__, __LINE__})
#define __syncwarp() \
  ::lockstep::emulation::SyncWarp(0xffffffffu, {__FILE__, __LINE__})

using dim3 = ::lockstep::emulation::Dim3;

namespace lockstep::emulation {

// Every lane of the mask shows `value` and makes something of all:
// read(lane) is what a lane shows.
template <typename T, typename Read>
auto Exchange(uint32_t mask, const T& value, const Read& read) {
  static_assert(sizeof(T) <= 32 && std::is_trivially_copyable_v<T>);
  BeginExchange(mask, &value, sizeof(T));
  const auto result = read([mask](unsigned lane) {
    T shown;
    std::memcpy(&shown, LaneBytes(mask, lane), sizeof(T));
    return shown;
  });
  EndExchange(mask);
  return result;
}

}  // namespace lockstep::emulation

template <typename T>
T __shfl_sync(uint32_t mask, T value, int lane) {
  return lockstep::emulation::Exchange(
      mask, value, [lane](const auto& of) { return of(lane & 31); });
}

template <typename T>
T __shfl_xor_sync(uint32_t mask, T value, int bits) {
  return __shfl_sync(mask, value,
                     static_cast<int>(lockstep::emulation::Lane()) ^ bits);
}

inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline float __uint_as_float(uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline uint32_t __float_as_uint(float x) { return std::bit_cast<uint32_t>(x); }

// Each rounded by itself, where a compiler could make one of two.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
