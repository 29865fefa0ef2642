#include "kernels/cuda/dense_product.h"

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/bfloat16.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/stored_weight.h"

namespace lockstep::cuda {
namespace {

// A block computes a tile of y, kSide rows for each of a thread's by kOutputs,
// out of tiles of x and w that are kDepth deep.
constexpr int kLanes = 16;  // threads along the outputs
constexpr int kSide = 8;    // and along the rows
constexpr int kThreads = kLanes * kSide;
constexpr int kPerLane = 4;
constexpr int kOutputs = kLanes * kPerLane;
constexpr int kDepth = 32;
// Lanes read rows side by side: other banks for each of them.
constexpr int kStride = kDepth + 1;

template <int kPerThread>
struct Shared {
  float x[kSide * kPerThread][kStride];
  float w[kOutputs][kStride];
};

// Loads rows first … of a matrix into a tile, from column `begin` on; what the
// matrix does not have is 0. value(row, column) is one of it.
template <int kRows, typename Value>
__device__ void LoadTile(int first, int rows, int begin, int cols,
                         const Value& value, float (*tile)[kStride]) {
  for (int i = threadIdx.x; i < kRows * kDepth; i += kThreads) {
    const int row = i / kDepth, k = i % kDepth;
    const bool held = first + row < rows && begin + k < cols;
    tile[row][k] = held ? value(first + row, begin + k) : 0.0f;
  }
}

// A block's rows are of one matrix.
template <int kPerThread, typename Weight, typename X, typename Y>
__global__ void __launch_bounds__(kThreads)
    MultiplyDenseKernel(ProductArgs<X, Y> args, ProductGroups groups) {
  auto& shared = *DynamicShared<Shared<kPerThread>>();
  const StoredMatrix& w = args.w;
  const int lane = threadIdx.x % kLanes, side = threadIdx.x / kLanes;
  const int first_output = blockIdx.x * kOutputs;
  const RowTile tile = groups.Tile(blockIdx.y, kSide * kPerThread, args.count);
  if (tile.count == 0) return;
  const int end_row = tile.begin + tile.count;
  const auto x_value = [&](int row, int k) {
    return ToFloat(args.x[groups.XRow(row) * w.cols + k]);
  };
  const auto w_value = [&](int row, int k) {
    const size_t of_all = static_cast<size_t>(tile.matrix) * w.rows + row;
    const size_t at = of_all * w.cols + k;
    return Weight::Value(w.data + at * Weight::kBytes, 0);
  };
  float sums[kPerThread][kPerLane] = {};
  for (int begin = 0; begin < w.cols; begin += kDepth) {
    LoadTile<kSide * kPerThread>(tile.begin, end_row, begin, w.cols, x_value,
                                 shared.x);
    LoadTile<kOutputs>(first_output, w.rows, begin, w.cols, w_value, shared.w);
    __syncthreads();
    for (int k = 0; k < kDepth; ++k) {
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        const float x = shared.x[side + i * kSide][k];
#pragma unroll
        for (int j = 0; j < kPerLane; ++j) {
          sums[i][j] = fmaf(x, shared.w[lane + j * kLanes][k], sums[i][j]);
        }
      }
    }
    __syncthreads();  // before the next tiles replace these
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int row = tile.begin + side + i * kSide;
    if (row >= end_row) continue;
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      const int output = first_output + lane + j * kLanes;
      if (output >= w.rows) continue;
      const float bias = args.bias == nullptr ? 0.0f : args.bias[output];
      args.y[row * args.y_stride + output] = FromFloat<Y>(sums[i][j] + bias);
    }
  }
}

template <int kPerThread, typename Weight, typename X, typename Y>
CudaError LaunchTiles(const ProductArgs<X, Y>& args,
                      const ProductGroups& groups, Stream stream) {
  constexpr int kRows = kSide * kPerThread;
  const int tiles = groups.tiles == nullptr ? (args.count + kRows - 1) / kRows
                                            : groups.num_tiles;
  if (tiles == 0 || args.w.rows == 0) return kCudaSuccess;
  const dim3 grid = {
      static_cast<unsigned>((args.w.rows + kOutputs - 1) / kOutputs),
      static_cast<unsigned>(tiles)};
  return Launch(MultiplyDenseKernel<kPerThread, Weight, X, Y>,
                {grid, dim3{kThreads}, sizeof(Shared<kPerThread>)}, stream,
                args, groups);
}

// The chains of sums are the same in either; few rows waste less of the small
// one.
template <typename X, typename Y>
CudaError LaunchProduct(const ProductArgs<X, Y>& args, int rows_at_once,
                        const ProductGroups& groups, Stream stream) {
  static_assert(kSide == kFewTileRows && 4 * kSide == kMostTileRows);
  if (rows_at_once > kMostTileRows) return kCudaInvalidValue;
  return WithPlainValue(args.w.type, [&]<typename Weight>(Weight) {
    return rows_at_once <= kSide ? LaunchTiles<1, Weight>(args, groups, stream)
                                 : LaunchTiles<4, Weight>(args, groups, stream);
  });
}

}  // namespace

template <typename X, typename Y>
CudaError MultiplyDense(const ProductArgs<X, Y>& args, Stream stream) {
  return LaunchProduct(args, std::min(args.count, kMostTileRows), {}, stream);
}

template <typename X, typename Y>
CudaError MultiplyDenseGroups(const ProductArgs<X, Y>& args,
                              const ProductGroups& groups, Stream stream) {
  return LaunchProduct(args, groups.tile_rows, groups, stream);
}

template CudaError MultiplyDense(const ProductArgs<float, float>&, Stream);
template CudaError MultiplyDense(const ProductArgs<BFloat16, float>&, Stream);
template CudaError MultiplyDense(const ProductArgs<BFloat16, BFloat16>&,
                                 Stream);
template CudaError MultiplyDenseGroups(const ProductArgs<float, float>&,
                                       const ProductGroups&, Stream);
template CudaError MultiplyDenseGroups(const ProductArgs<BFloat16, float>&,
                                       const ProductGroups&, Stream);
template CudaError MultiplyDenseGroups(const ProductArgs<BFloat16, BFloat16>&,
                                       const ProductGroups&, Stream);

}  // namespace lockstep::cuda
