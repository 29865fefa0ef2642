#pragma once

#include <cstddef>

#include "kernels/cuda/cuda_types.h"
#include "kernels/cuda/paged_batch.h"
#include "kernels/rotary.h"

namespace lockstep::cuda {

// What becomes of a token's queries, keys and values before attention, in one
// pass: RMS norm of each query and key vector (where there are weights),
// rotation of their first rotary_dim dimensions, and keys and values to their
// pages. T is float or BFloat16.
template <typename T>
struct RotaryArgs {
  // [num_tokens, heads + 2·kv_heads, head_dim]: queries, keys, values; rows
  // `stride` elements apart. The queries are changed in place.
  T* qkv;
  ptrdiff_t stride;
  int heads;
  const float* q_norm;  // [head_dim], or null: no norm
  const float* k_norm;
  float eps;
  // Every kind of rotation is a table of angles: [max_position,
  // rotary_dim / 2].
  kernels::RopeStyle style;
  int rotary_dim;
  const float* cos;
  const float* sin;
};

template <typename T>
CudaError RotateAndStoreKv(const RotaryArgs<T>& args, const PagedBatch& batch,
                           const PagedKv<T>& kv, Stream stream);

}  // namespace lockstep::cuda
