#pragma once

#include <cstdint>

#include "kernels/cuda/device.h"
#include "kernels/cuda/reduction.h"

// How logits compare and weigh, as in the worker's sampler: NaN counts as minus
// infinity, -0 is 0, and of equal logits the lower id is better.
namespace lockstep::cuda {

// Larger for larger logits.
using LogitKey = uint32_t;
inline constexpr LogitKey kNoLogit = 0;  // below that of minus infinity

__device__ inline LogitKey KeyOf(float logit) {
  const uint32_t bits =
      __float_as_uint(logit == logit ? logit + 0.0f : MinusInfinity());
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000;
}

__device__ inline float LogitOf(LogitKey key) {
  return __uint_as_float(key >> 31 != 0 ? key ^ 0x80000000 : ~key);
}

struct RankedLogit {
  LogitKey key;
  uint32_t id;
};
__device__ inline RankedLogit WorstOfAll() { return {kNoLogit, 0xffffffff}; }

__device__ inline bool IsBetter(RankedLogit a, RankedLogit b) {
  return a.key != b.key ? a.key > b.key : a.id < b.id;
}

struct TakeBetter {
  __device__ RankedLogit operator()(RankedLogit a, RankedLogit b) const {
    return IsBetter(a, b) ? a : b;
  }
};

__device__ inline RankedLogit FromLane(RankedLogit x, int lane) {
  return {__shfl_sync(kAllLanes, x.key, lane),
          __shfl_sync(kAllLanes, x.id, lane)};
}

// exp((logit - max) * scale), 0 below e^-87: operation for operation that of
// worker/sampling/logit_passes.cc, with the same bits. No two of them are
// fused. REQUIRES: logits of keys.
__device__ inline float ExpWeight(float logit, float max, float scale) {
  constexpr float kLowest = -87.0f;
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRoundToInteger = 12582912.0f;  // 1.5 * 2^23
  constexpr float kTerms[] = {1.0f / 120, 1.0f / 24, 1.0f / 6,
                              0.5f,       1.0f,      1.0f};
  const float x = logit == max ? 0.0f : __fmul_rn(__fsub_rn(logit, max), scale);
  if (!(x >= kLowest)) return 0;
  const float shifted = __fadd_rn(__fmul_rn(x, kLog2E), kRoundToInteger);
  const float n = __fsub_rn(shifted, kRoundToInteger);
  const float r =
      __fsub_rn(__fsub_rn(x, __fmul_rn(n, kLn2High)), __fmul_rn(n, kLn2Low));
  float p = 1.0f / 720;
  for (float term : kTerms) p = __fadd_rn(__fmul_rn(p, r), term);
  const float weight =
      __uint_as_float(__float_as_uint(p) + (__float_as_uint(shifted) << 23));
  return weight > 1.0f ? 1.0f : weight;
}

}  // namespace lockstep::cuda
