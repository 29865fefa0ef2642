#include "kernels/cuda/gather.h"

#include <cstddef>

#include "kernels/cuda/bfloat16.h"
#include "kernels/cuda/device.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 128;

// A block a row.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    EmbedKernel(EmbeddingShard<T> shard, const uint32_t* ids, T* y) {
  // Wraps around below `first`, and so is too large as well.
  const uint32_t row = ids[blockIdx.x] - shard.first;
  const bool held = row < static_cast<uint32_t>(shard.rows);
  const T* from = shard.table + static_cast<size_t>(row) * shard.dim;
  T* to = y + static_cast<size_t>(blockIdx.x) * shard.dim;
  for (int i = threadIdx.x; i < shard.dim; i += kThreads) {
    to[i] = FromFloat<T>(held ? ToFloat(from[i]) + 0.0f : 0.0f);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    GatherRowsKernel(const T* x, const int32_t* indices, int dim, T* y) {
  const T* from = x + static_cast<size_t>(indices[blockIdx.x]) * dim;
  T* to = y + static_cast<size_t>(blockIdx.x) * dim;
  for (int i = threadIdx.x; i < dim; i += kThreads) to[i] = from[i];
}

LaunchShape BlockARow(int count) {
  return {dim3{static_cast<unsigned>(count)}, dim3{kThreads}};
}

}  // namespace

template <typename T>
CudaError Embed(const EmbeddingShard<T>& shard, const uint32_t* ids, int count,
                T* y, Stream stream) {
  if (count == 0) return kCudaSuccess;
  return Launch(EmbedKernel<T>, BlockARow(count), stream, shard, ids, y);
}

template <typename T>
CudaError GatherRows(const T* x, const int32_t* indices, int count, int dim,
                     T* y, Stream stream) {
  if (count == 0) return kCudaSuccess;
  return Launch(GatherRowsKernel<T>, BlockARow(count), stream, x, indices, dim,
                y);
}

template CudaError Embed(const EmbeddingShard<float>&, const uint32_t*, int,
                         float*, Stream);
template CudaError Embed(const EmbeddingShard<BFloat16>&, const uint32_t*, int,
                         BFloat16*, Stream);
template CudaError GatherRows(const float*, const int32_t*, int, int, float*,
                              Stream);
template CudaError GatherRows(const BFloat16*, const int32_t*, int, int,
                              BFloat16*, Stream);

}  // namespace lockstep::cuda
