#pragma once

#include <cstdint>

struct CUstream_st;

// CUDA's types in headers that know nothing of CUDA: who calls a kernel is
// built with and without it.
namespace lockstep::cuda {

using Stream = CUstream_st*;  // cudaStream_t; the emulation has none

// cudaError_t as a number. What a kernel does wrong on a GPU shows in a later
// call; its launch fails for its shape, or for want of a driver.
using CudaError = int;
inline constexpr CudaError kCudaSuccess = 0;
inline constexpr CudaError kCudaInvalidValue = 1;
inline constexpr CudaError kCudaLaunchFailure = 719;

// The upper half of a float; the bits of __nv_bfloat16.
struct BFloat16 {
  uint16_t bits;
};

}  // namespace lockstep::cuda
