#pragma once

#include "kernels/cuda/bfloat16.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/reduction.h"

// The running softmax of one row, a warp's lanes sharing its output: lane l has
// dimensions l, l + 32, …. Scores are in units of log 2.
namespace lockstep::cuda {

template <int kPerLane>
struct AttentionSums {
  float largest;  // score so far; minus infinity: nothing was seen
  float weight;   // Σ 2^(score - largest)
  float out[kPerLane];

  __device__ void Clear() {
    largest = MinusInfinity();
    weight = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) out[i] = 0;
  }

  // From now on relative to a score at least as large.
  __device__ void RaiseTo(float score) {
    const float factor = exp2f(largest - score);
    largest = score;
    weight *= factor;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) out[i] *= factor;
  }

  // Takes in what was summed apart, over later positions. Each product but one
  // of a sum is rounded, so that no compiler chooses which.
  __device__ void Merge(const AttentionSums& later) {
    const float score = fmaxf(largest, later.largest);
    if (score == MinusInfinity()) return;
    const float factor = exp2f(largest - score);
    const float later_factor = exp2f(later.largest - score);
    largest = score;
    weight = fmaf(weight, factor, later.weight * later_factor);
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      out[i] = fmaf(out[i], factor, later.out[i] * later_factor);
    }
  }

  // A lane's dimensions of the average value.
  template <typename T>
  __device__ void Write(int lane, int head_dim, T* to) const {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int d = lane + i * kWarpLanes;
      if (d < head_dim) to[d] = FromFloat<T>(out[i] / weight);
    }
  }
};

}  // namespace lockstep::cuda
