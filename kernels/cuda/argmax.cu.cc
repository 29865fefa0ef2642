#include "kernels/cuda/argmax.h"

#include "kernels/cuda/device.h"
#include "kernels/cuda/reduction.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / kWarpLanes;

struct Candidate {
  float logit;
  uint32_t id;
  uint32_t is_finite;  // it, or one that it is better than
};

__device__ inline Candidate Better(Candidate a, Candidate b) {
  const bool first = a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  Candidate better = first ? a : b;
  better.is_finite = a.is_finite | b.is_finite;
  return better;
}

__device__ inline Candidate BestOfWarp(Candidate best) {
  for (int bits = kWarpLanes / 2; bits > 0; bits /= 2) {
    best = Better(best, {__shfl_xor_sync(kAllLanes, best.logit, bits),
                         __shfl_xor_sync(kAllLanes, best.id, bits),
                         __shfl_xor_sync(kAllLanes, best.is_finite, bits)});
  }
  return best;
}

// A block a row.
__global__ void __launch_bounds__(kThreads)
    ArgMaxKernel(const float* logits, int64_t stride, int vocabulary,
                 uint32_t* ids) {
  auto* of_warp = DynamicShared<Candidate>();  // [kWarps]
  const float* row = logits + blockIdx.x * stride;
  const float lowest = MinusInfinity();
  const Candidate nothing = {lowest, 0xffffffff, 0};
  Candidate best = nothing;
  for (int id = threadIdx.x; id < vocabulary; id += kThreads) {
    const float logit = row[id];
    // Of infinities and NaN it is NaN.
    const uint32_t is_finite = logit - logit == 0 ? 1 : 0;
    best = Better(best, {logit == logit ? logit : lowest,
                         static_cast<uint32_t>(id), is_finite});
  }
  best = BestOfWarp(best);
  const int warp = threadIdx.x / kWarpLanes, lane = threadIdx.x % kWarpLanes;
  if (lane == 0) of_warp[warp] = best;
  __syncthreads();
  if (warp > 0) return;
  best = BestOfWarp(lane < kWarps ? of_warp[lane] : nothing);
  if (lane > 0) return;
  ids[blockIdx.x] = best.is_finite != 0 ? best.id : kNoFiniteLogit;
}

}  // namespace

CudaError ArgMax(const float* logits, int64_t stride, int rows, int vocabulary,
                 uint32_t* ids, Stream stream) {
  if (rows == 0) return kCudaSuccess;
  return Launch(ArgMaxKernel,
                {dim3{static_cast<unsigned>(rows)}, dim3{kThreads},
                 kWarps * sizeof(Candidate)},
                stream, logits, stride, vocabulary, ids);
}

}  // namespace lockstep::cuda
