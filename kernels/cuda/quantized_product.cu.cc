#include "kernels/cuda/quantized_product.h"

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/bfloat16.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/reduction.h"
#include "kernels/cuda/stored_weight.h"

namespace lockstep::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kRowsAtOnce = 4;  // of x, that a decoded weight meets

// A warp computes output j for kRowsAtOnce rows of x: its lanes take every 32nd
// weight of w's row j. Whatever other rows there are, a sum is the same chain.
template <typename Block, typename X, typename Y>
__global__ void __launch_bounds__(kWarps* kWarpLanes)
    MultiplyStoredKernel(ProductArgs<X, Y> args, ProductGroups groups) {
  const StoredMatrix& w = args.w;
  const int j = blockIdx.x * kWarps + threadIdx.y, lane = threadIdx.x;
  if (j >= w.rows) return;
  const RowTile tile = groups.Tile(blockIdx.y, kRowsAtOnce, args.count);
  const int blocks = w.cols / Block::kValues, end = tile.begin + tile.count;
  const size_t row = static_cast<size_t>(tile.matrix) * w.rows + j;
  const uint8_t* block = w.data + row * blocks * Block::kBytes;
  const float bias = args.bias == nullptr ? 0.0f : args.bias[j];
  for (int first = tile.begin; first < end; first += kRowsAtOnce) {
    const X* x[kRowsAtOnce];
    for (int i = 0; i < kRowsAtOnce; ++i) {
      x[i] = args.x + groups.XRow(first + i < end ? first + i : first) * w.cols;
    }
    float sums[kRowsAtOnce] = {};
    for (int k = lane; k < w.cols; k += kWarpLanes) {
      const uint8_t* at = block + k / Block::kValues * Block::kBytes;
      const float weight = Block::Value(at, k % Block::kValues);
      for (int i = 0; i < kRowsAtOnce; ++i) {
        if (first + i >= end) break;
        sums[i] = fmaf(ToFloat(x[i][k]), weight, sums[i]);
      }
    }
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const float sum = WarpSum(sums[i]);
      if (lane == 0 && first + i < end) {
        args.y[(first + i) * args.y_stride + j] = FromFloat<Y>(sum + bias);
      }
    }
  }
}

template <typename X, typename Y>
CudaError LaunchProduct(const ProductArgs<X, Y>& args,
                        const ProductGroups& groups, Stream stream) {
  return WithStoredBlock(args.w.type, [&]<typename Block>(Block) {
    if (args.w.cols % Block::kValues != 0) return kCudaInvalidValue;
    const int tiles = groups.tiles == nullptr
                          ? (args.count + kRowsAtOnce - 1) / kRowsAtOnce
                          : groups.num_tiles;
    if (tiles == 0 || args.w.rows == 0) return kCudaSuccess;
    const dim3 grid = {
        static_cast<unsigned>((args.w.rows + kWarps - 1) / kWarps),
        static_cast<unsigned>(tiles)};
    return Launch(MultiplyStoredKernel<Block, X, Y>,
                  {grid, dim3{kWarpLanes, kWarps}}, stream, args, groups);
  });
}

}  // namespace

template <typename X, typename Y>
CudaError MultiplyStored(const ProductArgs<X, Y>& args, Stream stream) {
  return LaunchProduct(args, {}, stream);
}

template <typename X, typename Y>
CudaError MultiplyStoredGroups(const ProductArgs<X, Y>& args,
                               const ProductGroups& groups, Stream stream) {
  return LaunchProduct(args, groups, stream);
}

template CudaError MultiplyStored(const ProductArgs<float, float>&, Stream);
template CudaError MultiplyStored(const ProductArgs<BFloat16, float>&, Stream);
template CudaError MultiplyStored(const ProductArgs<BFloat16, BFloat16>&,
                                  Stream);
template CudaError MultiplyStoredGroups(const ProductArgs<float, float>&,
                                        const ProductGroups&, Stream);
template CudaError MultiplyStoredGroups(const ProductArgs<BFloat16, float>&,
                                        const ProductGroups&, Stream);
template CudaError MultiplyStoredGroups(const ProductArgs<BFloat16, BFloat16>&,
                                        const ProductGroups&, Stream);

}  // namespace lockstep::cuda
