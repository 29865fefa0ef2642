#include "kernels/cuda/experts/expert_rows.h"

#include <cstddef>

#include "kernels/cuda/device.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 128;

// A block an expert, and one more for the experts of other ranks. Each thread
// takes a run of rows, so that the order of threads is that of tokens.
__global__ void __launch_bounds__(kThreads)
    SortRowsKernel(ExpertRowsArgs args) {
  auto* const lower = DynamicShared<int32_t>();  // [kThreads]
  auto* const equal = lower + kThreads;          // [kThreads]
  const int expert = args.begin + static_cast<int>(blockIdx.x);
  const int rows = args.tokens * args.per_token, thread = threadIdx.x;
  const int run = (rows + kThreads - 1) / kThreads;
  const int end = (thread + 1) * run < rows ? (thread + 1) * run : rows;
  lower[thread] = equal[thread] = 0;
  for (int i = thread * run; i < end; ++i) {
    const int32_t other = args.experts[i];
    lower[thread] += other >= args.begin && other < expert;
    equal[thread] += other == expert;
  }
  __syncthreads();
  int first = 0;  // row of the expert, then of the thread
  for (int t = 0; t < kThreads; ++t) first += lower[t];
  if (thread == 0) args.first_rows[blockIdx.x] = first;
  for (int t = 0; t < thread; ++t) first += equal[t];
  for (int i = thread * run; i < end; ++i) {
    const int32_t other = args.experts[i];
    if (expert == args.end) {
      if (other < args.begin || other >= args.end) args.row_of[i] = -1;
    } else if (other == expert) {
      args.row_of[i] = first++;
    }
  }
}

__device__ RowTile TileOf(const ExpertRowsArgs& args, int number) {
  int before = 0;  // tiles of the experts so far
  for (int expert = 0; expert < args.end - args.begin; ++expert) {
    const int first = args.first_rows[expert];
    const int count = args.first_rows[expert + 1] - first;
    const int done = (number - before) * args.tile_rows;
    before += (count + args.tile_rows - 1) / args.tile_rows;
    if (number >= before) continue;
    const int left = count - done;
    return {expert, first + done,
            left < args.tile_rows ? left : args.tile_rows};
  }
  return {0, 0, 0};
}

// A thread an expert of a token, and a tile.
__global__ void __launch_bounds__(kThreads)
    ListRowsKernel(ExpertRowsArgs args) {
  const int number = static_cast<int>(blockIdx.x) * kThreads + threadIdx.x;
  if (number < args.num_tiles) args.tiles[number] = TileOf(args, number);
  if (number >= args.tokens * args.per_token) return;
  const int row = args.row_of[number];
  if (row >= 0) args.token_of[row] = number / args.per_token;
}

// A block a token.
__global__ void __launch_bounds__(kThreads)
    SumExpertsKernel(ExpertSumArgs args) {
  const size_t token = blockIdx.x, dim = args.dim;
  const int32_t* rows = args.row_of + token * args.per_token;
  const float* weights = args.weights + token * args.per_token;
  const float gate = args.shared_gate == nullptr
                         ? 1.0f
                         : 1.0f / (1.0f + expf(-args.shared_gate[token]));
  for (size_t d = threadIdx.x; d < dim; d += kThreads) {
    float sum = 0;
    for (int i = 0; i < args.per_token; ++i) {
      if (rows[i] < 0) continue;
      sum = fmaf(weights[i], args.outputs[rows[i] * dim + d], sum);
    }
    if (args.shared != nullptr) {
      sum = fmaf(gate, args.shared[token * dim + d], sum);
    }
    args.y[token * dim + d] = sum;
  }
}

LaunchShape Blocks(int count, size_t shared_bytes = 0) {
  return {dim3{static_cast<unsigned>(count)}, dim3{kThreads}, shared_bytes};
}

}  // namespace

CudaError SortExpertRows(const ExpertRowsArgs& args, Stream stream) {
  if (args.tokens == 0) return kCudaSuccess;
  const CudaError error =
      Launch(SortRowsKernel,
             Blocks(args.end - args.begin + 1, 2 * kThreads * sizeof(int32_t)),
             stream, args);
  if (error != kCudaSuccess || args.num_tiles == 0) return error;
  // No more tiles than rows.
  const int rows = args.tokens * args.per_token;
  return Launch(ListRowsKernel, Blocks((rows + kThreads - 1) / kThreads),
                stream, args);
}

CudaError SumExperts(const ExpertSumArgs& args, Stream stream) {
  if (args.tokens == 0) return kCudaSuccess;
  return Launch(SumExpertsKernel, Blocks(args.tokens), stream, args);
}

}  // namespace lockstep::cuda
