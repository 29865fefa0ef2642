#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_types.h"
#include "kernels/cuda/product_args.h"

namespace lockstep::cuda {

// The rows of an embedding that a rank holds: ids from `first` on.
struct EmbeddingShard {
  StoredMatrix table;
  uint32_t first;
  float scale = 1;  // of what is read
};

// Ids of tokens, [count]. One with kIsChosen set is a place in `chosen`, which
// has the id: what the device itself has chosen before.
inline constexpr uint32_t kIsChosen = 1u << 31;
struct TokenIds {
  const uint32_t* ids = nullptr;
  const uint32_t* chosen = nullptr;
};

// y[i] = the row of the i-th id in fp32, times shard.scale, or zeros where
// another rank holds it; y [count, table.cols]. A -0 becomes +0, as adding the
// other ranks' zeros makes it, so that the number of ranks does not show.
// kCudaInvalidValue for a type that holds no weights.
CudaError Embed(const EmbeddingShard& shard, const TokenIds& tokens, int count,
                float* y, Stream stream);

// y[i] = x[indices[i]], rows of dim; y [count, dim]. T is float or BFloat16.
template <typename T>
CudaError GatherRows(const T* x, const int32_t* indices, int count, int dim,
                     T* y, Stream stream);

// y[row, shard·cols + c] = x[shard, row, c]: what was gathered shard by shard,
// row by row. x [shards, rows, cols].
CudaError JoinShards(const float* x, int shards, int rows, int cols, float* y,
                     Stream stream);

}  // namespace lockstep::cuda
