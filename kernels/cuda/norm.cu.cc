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
    RmsNormKernel(X* residual, float added, RmsNormArgs<X, Y> args) {
  const size_t row = static_cast<size_t>(blockIdx.x) * args.dim;
  const X* x = args.x + row;
  float* of_warp = DynamicShared<float>();
  float squares = 0;
  for (int i = threadIdx.x; i < args.dim; i += kThreads) {
    float value = ToFloat(x[i]);
    if (kAdds) {
      const X sum =
          FromFloat<X>(fmaf(added, value, ToFloat(residual[row + i])));
      residual[row + i] = sum;
      value = ToFloat(sum);
    }
    squares = fmaf(value, value, squares);
  }
  const float scale = rsqrtf(BlockSum(squares, of_warp) / args.dim + args.eps);
  if (kAdds) x = residual + row;
  for (int i = threadIdx.x; i < args.dim; i += kThreads) {
    const float value = ToFloat(x[i]);
    args.y[row + i] = FromFloat<Y>(
        args.weight == nullptr ? value : value * scale * args.weight[i]);
  }
}

template <bool kAdds, typename X, typename Y>
CudaError LaunchNorm(X* residual, float added, const RmsNormArgs<X, Y>& args,
                     Stream stream) {
  if (args.rows == 0) return kCudaSuccess;
  return Launch(RmsNormKernel<kAdds, X, Y>,
                {dim3{static_cast<unsigned>(args.rows)}, dim3{kThreads},
                 kThreads / kWarpLanes * sizeof(float)},
                stream, residual, added, args);
}

// A block a row, a warp a head.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    HeadSquaresKernel(const T* x, ptrdiff_t stride, int head_dim,
                      HeadRun queries, HeadRun keys, float* squares) {
  const int lane = threadIdx.x % kWarpLanes, all = queries.heads + keys.heads;
  const T* row = x + blockIdx.x * stride;
  for (int head = threadIdx.x / kWarpLanes; head < all;
       head += kThreads / kWarpLanes) {
    const bool is_query = head < queries.heads;
    const HeadRun& run = is_query ? queries : keys;
    const int own = (is_query ? head : head - queries.heads) - run.first;
    float sum = 0;
    if (own >= 0 && own < run.count) {
      const T* of_head = row + run.offset + own * head_dim;
      for (int i = lane; i < head_dim; i += kWarpLanes) {
        sum = fmaf(ToFloat(of_head[i]), ToFloat(of_head[i]), sum);
      }
    }
    sum = WarpSum(sum);
    if (lane == 0) squares[static_cast<size_t>(blockIdx.x) * all + head] = sum;
  }
}

// A block a row.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    NormPartKernel(PartNormArgs<T> args) {
  const float* squares = args.squares + blockIdx.x * args.squares_stride;
  float sum = 0;
  for (int head = 0; head < args.heads; ++head) sum += squares[head];
  const auto count = static_cast<float>(args.heads * args.head_dim);
  const float scale = rsqrtf(sum / count + args.eps);
  T* x = args.x + blockIdx.x * args.stride;
  for (int i = threadIdx.x; i < args.count; i += kThreads) {
    x[i] = FromFloat<T>(ToFloat(x[i]) * scale * args.weight[i]);
  }
}

LaunchShape BlockARow(int rows) {
  return {dim3{static_cast<unsigned>(rows)}, dim3{kThreads}};
}

}  // namespace

template <typename X, typename Y>
CudaError RmsNorm(const RmsNormArgs<X, Y>& args, Stream stream) {
  return LaunchNorm<false>(static_cast<X*>(nullptr), 0, args, stream);
}

template <typename X, typename Y>
CudaError AddRmsNorm(X* residual, float scale, const RmsNormArgs<X, Y>& args,
                     Stream stream) {
  return LaunchNorm<true>(residual, scale, args, stream);
}

template <typename T>
CudaError HeadSquares(const T* x, ptrdiff_t stride, int rows, int head_dim,
                      const HeadRun& queries, const HeadRun& keys,
                      float* squares, Stream stream) {
  if (rows == 0) return kCudaSuccess;
  return Launch(HeadSquaresKernel<T>, BlockARow(rows), stream, x, stride,
                head_dim, queries, keys, squares);
}

template <typename T>
CudaError NormPart(const PartNormArgs<T>& args, Stream stream) {
  if (args.rows == 0) return kCudaSuccess;
  return Launch(NormPartKernel<T>, BlockARow(args.rows), stream, args);
}

template CudaError RmsNorm(const RmsNormArgs<float, float>&, Stream);
template CudaError RmsNorm(const RmsNormArgs<float, BFloat16>&, Stream);
template CudaError RmsNorm(const RmsNormArgs<BFloat16, BFloat16>&, Stream);
template CudaError AddRmsNorm(float*, float, const RmsNormArgs<float, float>&,
                              Stream);
template CudaError AddRmsNorm(float*, float,
                              const RmsNormArgs<float, BFloat16>&, Stream);
template CudaError AddRmsNorm(BFloat16*, float,
                              const RmsNormArgs<BFloat16, BFloat16>&, Stream);
template CudaError HeadSquares(const float*, ptrdiff_t, int, int,
                               const HeadRun&, const HeadRun&, float*, Stream);
template CudaError HeadSquares(const BFloat16*, ptrdiff_t, int, int,
                               const HeadRun&, const HeadRun&, float*, Stream);
template CudaError NormPart(const PartNormArgs<float>&, Stream);
template CudaError NormPart(const PartNormArgs<BFloat16>&, Stream);

}  // namespace lockstep::cuda
