#include "kernels/cuda/gather.h"

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device.h"
#include "kernels/cuda/stored_weight.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 128;

// A block a row.
template <typename Block>
__global__ void __launch_bounds__(kThreads)
    EmbedKernel(EmbeddingShard shard, TokenIds tokens, float* y) {
  const StoredMatrix& table = shard.table;
  const uint32_t id = tokens.ids[blockIdx.x];
  // Wraps around below `first`, and so is too large as well.
  const uint32_t row =
      ((id & kIsChosen) == 0 ? id : tokens.chosen[id & ~kIsChosen]) -
      shard.first;
  const bool held = row < static_cast<uint32_t>(table.rows);
  const size_t first = held ? static_cast<size_t>(row) * table.cols : 0;
  const uint8_t* from = table.data + first / Block::kValues * Block::kBytes;
  float* to = y + static_cast<size_t>(blockIdx.x) * table.cols;
  for (int i = threadIdx.x; i < table.cols; i += kThreads) {
    const uint8_t* block = from + i / Block::kValues * Block::kBytes;
    to[i] =
        held ? fmaf(Block::Value(block, i % Block::kValues), shard.scale, 0.0f)
             : 0.0f;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    GatherRowsKernel(const T* x, const int32_t* indices, int dim, T* y) {
  const T* from = x + static_cast<size_t>(indices[blockIdx.x]) * dim;
  T* to = y + static_cast<size_t>(blockIdx.x) * dim;
  for (int i = threadIdx.x; i < dim; i += kThreads) to[i] = from[i];
}

__global__ void __launch_bounds__(kThreads)
    JoinShardsKernel(const float* x, int rows, int cols, float* y) {
  const size_t row = blockIdx.x, shard = blockIdx.y, shards = gridDim.y;
  const float* from = x + (shard * rows + row) * cols;
  float* to = y + (row * shards + shard) * cols;
  for (int i = threadIdx.x; i < cols; i += kThreads) to[i] = from[i];
}

LaunchShape BlockARow(int count) {
  return {dim3{static_cast<unsigned>(count)}, dim3{kThreads}};
}

}  // namespace

CudaError Embed(const EmbeddingShard& shard, const TokenIds& tokens, int count,
                float* y, Stream stream) {
  if (count == 0) return kCudaSuccess;
  const auto launch = [&]<typename Block>(Block) {
    return Launch(EmbedKernel<Block>, BlockARow(count), stream, shard, tokens,
                  y);
  };
  return kernels::IsPlain(shard.table.type)
             ? WithPlainValue(shard.table.type, launch)
             : WithStoredBlock(shard.table.type, launch);
}

template <typename T>
CudaError GatherRows(const T* x, const int32_t* indices, int count, int dim,
                     T* y, Stream stream) {
  if (count == 0) return kCudaSuccess;
  return Launch(GatherRowsKernel<T>, BlockARow(count), stream, x, indices, dim,
                y);
}

CudaError JoinShards(const float* x, int shards, int rows, int cols, float* y,
                     Stream stream) {
  if (rows == 0) return kCudaSuccess;
  return Launch(
      JoinShardsKernel,
      {dim3{static_cast<unsigned>(rows), static_cast<unsigned>(shards)},
       dim3{kThreads}},
      stream, x, rows, cols, y);
}

template CudaError GatherRows(const float*, const int32_t*, int, int, float*,
                              Stream);
template CudaError GatherRows(const BFloat16*, const int32_t*, int, int,
                              BFloat16*, Stream);

}  // namespace lockstep::cuda
