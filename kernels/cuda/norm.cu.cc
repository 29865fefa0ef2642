#include "kernels/cuda/norm.h"

#include <cstddef>

#include "kernels/cuda/bfloat16.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/reduction.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;

// A block a row. Each thread reads again what it has read or written itself:
// it lies in the nearest cache, and no row is too long.
template <typename T, bool kAdds>
__global__ void __launch_bounds__(kThreads)
    RmsNormKernel(T* residual, RmsNormArgs<T> args) {
  const size_t row = static_cast<size_t>(blockIdx.x) * args.dim;
  const T* x = args.x + row;
  float* of_warp = DynamicShared<float>();
  float squares = 0;
  for (int i = threadIdx.x; i < args.dim; i += kThreads) {
    float value = ToFloat(x[i]);
    if (kAdds) {
      const T sum = FromFloat<T>(ToFloat(residual[row + i]) + value);
      residual[row + i] = sum;
      value = ToFloat(sum);
    }
    squares = fmaf(value, value, squares);
  }
  const float scale = rsqrtf(BlockSum(squares, of_warp) / args.dim + args.eps);
  if (kAdds) x = residual + row;
  for (int i = threadIdx.x; i < args.dim; i += kThreads) {
    args.y[row + i] = FromFloat<T>(ToFloat(x[i]) * scale * args.weight[i]);
  }
}

template <typename T, bool kAdds>
CudaError LaunchNorm(T* residual, const RmsNormArgs<T>& args, Stream stream) {
  if (args.rows == 0) return kCudaSuccess;
  return Launch(RmsNormKernel<T, kAdds>,
                {dim3{static_cast<unsigned>(args.rows)}, dim3{kThreads},
                 kThreads / kWarpLanes * sizeof(float)},
                stream, residual, args);
}

}  // namespace

template <typename T>
CudaError RmsNorm(const RmsNormArgs<T>& args, Stream stream) {
  return LaunchNorm<T, false>(nullptr, args, stream);
}

template <typename T>
CudaError AddRmsNorm(T* residual, const RmsNormArgs<T>& args, Stream stream) {
  return LaunchNorm<T, true>(residual, args, stream);
}

template CudaError RmsNorm(const RmsNormArgs<float>&, Stream);
template CudaError RmsNorm(const RmsNormArgs<BFloat16>&, Stream);
template CudaError AddRmsNorm(float*, const RmsNormArgs<float>&, Stream);
template CudaError AddRmsNorm(BFloat16*, const RmsNormArgs<BFloat16>&, Stream);

}  // namespace lockstep::cuda
