#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_types.h"

namespace lockstep::cuda {

// The rows of an embedding that a rank holds: ids from `first` on.
template <typename T>
struct EmbeddingShard {
  const T* table;  // [rows, dim]
  uint32_t first;
  int rows;
  int dim;
};

// y[i] = the row of ids[i], or zeros where another rank holds it; y [count,
// dim]. A -0 becomes +0, as adding the other ranks' zeros makes it, so that the
// number of ranks does not show. T is float or BFloat16.
template <typename T>
CudaError Embed(const EmbeddingShard<T>& shard, const uint32_t* ids, int count,
                T* y, Stream stream);

// y[i] = x[indices[i]], rows of dim; y [count, dim].
template <typename T>
CudaError GatherRows(const T* x, const int32_t* indices, int count, int dim,
                     T* y, Stream stream);

}  // namespace lockstep::cuda
