#include "kernels/cuda/rotary.h"

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/bfloat16.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/reduction.h"

namespace lockstep::cuda {
namespace {

constexpr int kWarps = 4;

// 1 / rms of a vector, for all lanes.
template <typename T>
__device__ float InverseRms(const T* x, int dim, float eps) {
  float squares = 0;
  for (int i = threadIdx.x; i < dim; i += kWarpLanes) {
    squares = fmaf(ToFloat(x[i]), ToFloat(x[i]), squares);
  }
  const float inverse = rsqrtf(WarpSum(squares) / dim + eps);
  __syncwarp();  // all have read before one writes
  return inverse;
}

// y = x, normed and rotated, by one warp. y may be x: who reads an element
// writes it.
template <typename T>
__device__ void NormAndRotate(const RotaryArgs<T>& args, int position, int dim,
                              const T* x, const float* norm, T* y) {
  const float scale = norm == nullptr ? 1.0f : InverseRms(x, dim, args.eps);
  const auto normed = [&](int i) {
    return norm == nullptr ? ToFloat(x[i]) : ToFloat(x[i]) * scale * norm[i];
  };
  const int half = args.rotary_dim / 2;
  const bool halves = args.style == kernels::RopeStyle::kHalves;
  const size_t angles = static_cast<size_t>(position) * half;
  for (int i = threadIdx.x; i < half; i += kWarpLanes) {
    const int first = halves ? i : 2 * i;
    const int second = halves ? i + half : 2 * i + 1;
    const float a = normed(first), b = normed(second);
    const float cos = args.cos[angles + i], sin = args.sin[angles + i];
    y[first] = FromFloat<T>(a * cos - b * sin);
    y[second] = FromFloat<T>(b * cos + a * sin);
  }
  for (int i = args.rotary_dim + threadIdx.x; i < dim; i += kWarpLanes) {
    y[i] = FromFloat<T>(normed(i));
  }
}

// A block a token, a warp a head.
template <typename T>
__global__ void __launch_bounds__(kWarps* kWarpLanes)
    RotateAndStoreKvKernel(RotaryArgs<T> args, PagedBatch batch,
                           PagedKv<T> kv) {
  const int token = blockIdx.x, dim = kv.head_dim;
  const int position = batch.positions[token];
  const int32_t* pages =
      batch.page_tables +
      static_cast<size_t>(batch.sequence_of[token]) * batch.page_table_stride;
  T* row = args.qkv + token * args.stride;
  const int first_key = args.heads, first_value = first_key + kv.num_kv_heads;
  for (int head = threadIdx.y; head < first_value + kv.num_kv_heads;
       head += kWarps) {
    T* x = row + head * dim;
    if (head < first_key) {
      NormAndRotate(args, position, dim, x, args.q_norm, x);
    } else if (head < first_value) {
      T* key = kv.keys + kv.Offset(pages, position, head - first_key);
      NormAndRotate(args, position, dim, x, args.k_norm, key);
    } else {
      T* value = kv.values + kv.Offset(pages, position, head - first_value);
      for (int i = threadIdx.x; i < dim; i += kWarpLanes) value[i] = x[i];
    }
  }
}

}  // namespace

template <typename T>
CudaError RotateAndStoreKv(const RotaryArgs<T>& args, const PagedBatch& batch,
                           const PagedKv<T>& kv, Stream stream) {
  if (args.rotary_dim > kv.head_dim) return kCudaInvalidValue;
  if (batch.num_tokens == 0) return kCudaSuccess;
  return Launch(
      RotateAndStoreKvKernel<T>,
      {dim3{static_cast<unsigned>(batch.num_tokens)}, dim3{kWarpLanes, kWarps}},
      stream, args, batch, kv);
}

template CudaError RotateAndStoreKv(const RotaryArgs<float>&, const PagedBatch&,
                                    const PagedKv<float>&, Stream);
template CudaError RotateAndStoreKv(const RotaryArgs<BFloat16>&,
                                    const PagedBatch&, const PagedKv<BFloat16>&,
                                    Stream);

}  // namespace lockstep::cuda
