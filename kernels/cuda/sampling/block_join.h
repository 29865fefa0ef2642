#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device.h"
#include "kernels/cuda/sampling/probability_mass.h"

// What the threads of a block have, joined. All call, all get the result. Sums
// are of integers, so they are the same in any order.
namespace lockstep::cuda {

inline constexpr int kRowThreads = 512;  // of the block that works on a row
inline constexpr int kRowWarps = kRowThreads / kWarpLanes;

struct Add {
  template <typename T>
  __device__ T operator()(const T& a, const T& b) const {
    return a + b;
  }
};

// Several sums at a time.
template <typename T, int kCount>
struct Several {
  T of[kCount];

  __device__ Several operator+(const Several& other) const {
    Several sum;
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum.of[i] = of[i] + other.of[i];
    return sum;
  }
};

// What `lane` has. Words of several are shown one after the other.
__device__ inline uint32_t FromLane(uint32_t x, int lane) {
  return __shfl_sync(kAllLanes, x, lane);
}

__device__ inline ProbabilityMass FromLane(ProbabilityMass x, int lane) {
  const uint64_t high =
      __shfl_sync(kAllLanes, static_cast<uint64_t>(x >> 64), lane);
  const uint64_t low = __shfl_sync(kAllLanes, static_cast<uint64_t>(x), lane);
  return ProbabilityMass{high} << 64 | low;
}

template <typename T, int kCount>
__device__ Several<T, kCount> FromLane(const Several<T, kCount>& x, int lane) {
  Several<T, kCount> shown;
#pragma unroll
  for (int i = 0; i < kCount; ++i) shown.of[i] = FromLane(x.of[i], lane);
  return shown;
}

// Of the lanes that differ in bits below `lanes`.
template <typename T, typename Join>
__device__ T WarpJoin(T x, const Join& join, int lanes = kWarpLanes) {
  const int lane = threadIdx.x % kWarpLanes;
  for (int bits = lanes / 2; bits > 0; bits /= 2) {
    x = join(x, FromLane(x, lane ^ bits));
  }
  return x;
}

// Shared memory for joining: two places in turn, so that one barrier a join is
// enough.
class JoinScratch {
 public:
  static constexpr size_t kBytes = 2 * kRowWarps * 48;

  __device__ explicit JoinScratch(unsigned char* memory) : memory_(memory) {}

  template <typename T>
  __device__ T* Next() {
    static_assert(2 * kRowWarps * sizeof(T) <= kBytes);
    turn_ = 1 - turn_;
    return reinterpret_cast<T*>(memory_ + turn_ * (kBytes / 2));
  }

 private:
  unsigned char* const memory_;
  int turn_ = 0;
};

template <typename T, typename Join>
__device__ T BlockJoin(T x, const Join& join, JoinScratch* scratch) {
  const int warp = threadIdx.x / kWarpLanes, lane = threadIdx.x % kWarpLanes;
  T* const of_warp = scratch->Next<T>();
  x = WarpJoin(x, join);
  if (lane == 0) of_warp[warp] = x;
  __syncthreads();
  return WarpJoin(of_warp[lane % kRowWarps], join, kRowWarps);
}

}  // namespace lockstep::cuda
