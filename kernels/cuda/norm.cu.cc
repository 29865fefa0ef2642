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
template <bool kAdds, typename X, typename Y>
__global__ void __launch_bounds__(kThreads)
    RmsNormKernel(X* residual, RmsNormArgs<X, Y> args) {
  const size_t row = static_cast<size_t>(blockIdx.x) * args.dim;
  const X* x = args.x + row;
  float* of_warp = DynamicShared<float>();
  float squares = 0;
  for (int i = threadIdx.x; i < args.dim; i += kThreads) {
    float value = ToFloat(x[i]);
    if (kAdds) {
      const X sum = FromFloat<X>(ToFloat(residual[row + i]) + value);
      residual[row + i] = sum;
      value = ToFloat(sum);
    }
    squares = fmaf(value, value, squares);
  }
  const float scale = rsqrtf(BlockSum(squares, of_warp) / args.dim + args.eps);
  if (kAdds) x = residual + row;
  for (int i = threadIdx.x; i < args.dim; i += kThreads) {
    args.y[row + i] = FromFloat<Y>(ToFloat(x[i]) * scale * args.weight[i]);
  }
}

template <bool kAdds, typename X, typename Y>
CudaError LaunchNorm(X* residual, const RmsNormArgs<X, Y>& args,
                     Stream stream) {
  if (args.rows == 0) return kCudaSuccess;
  return Launch(RmsNormKernel<kAdds, X, Y>,
                {dim3{static_cast<unsigned>(args.rows)}, dim3{kThreads},
                 kThreads / kWarpLanes * sizeof(float)},
                stream, residual, args);
}

}  // namespace

template <typename X, typename Y>
CudaError RmsNorm(const RmsNormArgs<X, Y>& args, Stream stream) {
  return LaunchNorm<false>(static_cast<X*>(nullptr), args, stream);
}

template <typename X, typename Y>
CudaError AddRmsNorm(X* residual, const RmsNormArgs<X, Y>& args,
                     Stream stream) {
  return LaunchNorm<true>(residual, args, stream);
}

template CudaError RmsNorm(const RmsNormArgs<float, float>&, Stream);
template CudaError RmsNorm(const RmsNormArgs<float, BFloat16>&, Stream);
template CudaError RmsNorm(const RmsNormArgs<BFloat16, BFloat16>&, Stream);
template CudaError AddRmsNorm(float*, const RmsNormArgs<float, float>&, Stream);
template CudaError AddRmsNorm(float*, const RmsNormArgs<float, BFloat16>&,
                              Stream);
template CudaError AddRmsNorm(BFloat16*, const RmsNormArgs<BFloat16, BFloat16>&,
                              Stream);

}  // namespace lockstep::cuda
