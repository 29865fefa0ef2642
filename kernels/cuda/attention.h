#pragma once

#include <cstddef>

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/cuda_types.h"
#include "kernels/cuda/paged_batch.h"

namespace lockstep::cuda {

inline constexpr int kMaxHeadDim = 256;

// Paged attention of a step: prefill chunks and decodes in one batch.
//
// out[t, h] = softmax(scale·q[t, h]·Kᵀ)·V over positions 0..positions[t] of t's
// own sequence, or the last `window` of these unless that is 0; head h uses
// key-value head h / (heads / num_kv_heads). Unless soft_cap is 0 a score
// becomes soft_cap·tanh(score / soft_cap). Sums are in fp32, and a row's bits
// depend on its own query, keys and values alone. T is float or BFloat16.
template <typename T>
struct AttentionArgs {
  const T* q;  // [num_tokens, heads, head_dim], rows q_stride elements apart
  ptrdiff_t q_stride;
  int heads;
  float scale;
  int window;
  float soft_cap;
  T* out;  // [num_tokens, heads, head_dim], rows out_stride elements apart
  ptrdiff_t out_stride;
};

// A plan's lists in device memory, and room for its partials.
struct DeviceAttentionPlan {
  const AttentionTile* tiles;
  int num_tiles;
  const AttentionMerge* merges;
  int num_merges;
  float* partials;  // [num_partials, heads, head_dim + kPartialExtra]
};

// A partial is an output before its division, and these: the sum of its weights
// and the largest score.
inline constexpr int kPartialExtra = 2;

// kCudaInvalidValue where head_dim is above kMaxHeadDim or the key-value heads
// do not divide the heads. REQUIRES: keys and values are 16-byte aligned.
template <typename T>
CudaError Attend(const AttentionArgs<T>& args, const PagedBatch& batch,
                 const PagedKv<T>& kv, const DeviceAttentionPlan& plan,
                 Stream stream);

}  // namespace lockstep::cuda
