#pragma once

#include "kernels/cuda/device.h"

// Sums of all lanes of a warp, or all threads of a block. Each is a fixed tree,
// so its bits depend on the values alone. All threads call, all get the result.
namespace lockstep::cuda {

__device__ inline float WarpSum(float x) {
  for (int bits = kWarpLanes / 2; bits > 0; bits /= 2) {
    x += __shfl_xor_sync(kAllLanes, x, bits);
  }
  return x;
}

__device__ inline float MinusInfinity() { return __uint_as_float(0xff800000); }

__device__ inline float WarpMax(float x) {
  for (int bits = kWarpLanes / 2; bits > 0; bits /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, bits));
  }
  return x;
}

// `of_warp` is shared memory, a float a warp; a barrier must come before it is
// used again. REQUIRES: blockDim is {a multiple of 32, 1, 1}.
__device__ inline float BlockSum(float x, float* of_warp) {
  const int warp = threadIdx.x / kWarpLanes, lane = threadIdx.x % kWarpLanes;
  const int warps = blockDim.x / kWarpLanes;
  x = WarpSum(x);
  if (lane == 0) of_warp[warp] = x;
  __syncthreads();
  return WarpSum(lane < warps ? of_warp[lane] : 0.0f);
}

}  // namespace lockstep::cuda
