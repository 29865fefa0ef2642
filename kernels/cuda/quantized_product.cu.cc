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
template <typename T, typename Block>
__global__ void __launch_bounds__(kWarps* kWarpLanes)
    MultiplyStoredKernel(StoredMatrix w, const T* x, int count, T* y) {
  const int j = blockIdx.x * kWarps + threadIdx.y, lane = threadIdx.x;
  const int first = blockIdx.y * kRowsAtOnce;
  if (j >= w.rows) return;
  const int blocks = w.cols / Block::kValues;
  const uint8_t* block =
      w.data + static_cast<size_t>(j) * blocks * Block::kBytes;
  float sums[kRowsAtOnce] = {};
  for (int k = lane; k < w.cols; k += kWarpLanes) {
    const uint8_t* at = block + k / Block::kValues * Block::kBytes;
    const float weight = Block::Value(at, k % Block::kValues);
    for (int i = 0; i < kRowsAtOnce; ++i) {
      if (first + i >= count) break;
      const T value = x[static_cast<size_t>(first + i) * w.cols + k];
      sums[i] = fmaf(ToFloat(value), weight, sums[i]);
    }
  }
  for (int i = 0; i < kRowsAtOnce; ++i) {
    const float sum = WarpSum(sums[i]);
    if (lane == 0 && first + i < count) {
      y[static_cast<size_t>(first + i) * w.rows + j] = FromFloat<T>(sum);
    }
  }
}

template <typename T, typename Block>
CudaError LaunchProduct(const StoredMatrix& w, const T* x, int count, T* y,
                        Stream stream) {
  if (w.cols % Block::kValues != 0) return kCudaInvalidValue;
  if (count == 0 || w.rows == 0) return kCudaSuccess;
  const dim3 grid = {
      static_cast<unsigned>((w.rows + kWarps - 1) / kWarps),
      static_cast<unsigned>((count + kRowsAtOnce - 1) / kRowsAtOnce)};
  return Launch(MultiplyStoredKernel<T, Block>,
                {grid, dim3{kWarpLanes, kWarps}}, stream, w, x, count, y);
}

}  // namespace

template <typename T>
CudaError MultiplyStored(const StoredMatrix& w, const T* x, int count, T* y,
                         Stream stream) {
  switch (w.type) {
    case kernels::DType::kQ8_0:
      return LaunchProduct<T, Q8_0Block>(w, x, count, y, stream);
    case kernels::DType::kQ4_0:
      return LaunchProduct<T, Q4_0Block>(w, x, count, y, stream);
    case kernels::DType::kQ4_K:
      return LaunchProduct<T, Q4_KBlock>(w, x, count, y, stream);
    default:
      return kCudaInvalidValue;
  }
}

template CudaError MultiplyStored(const StoredMatrix&, const float*, int,
                                  float*, Stream);
template CudaError MultiplyStored(const StoredMatrix&, const BFloat16*, int,
                                  BFloat16*, Stream);

}  // namespace lockstep::cuda
