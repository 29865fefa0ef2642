#include "kernels/cuda/activation.h"

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/bfloat16.h"
#include "kernels/cuda/device.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;

__device__ inline float SiluTimes(float gate, float up) {
  return gate / (1 + expf(-gate)) * up;
}

// A thread a pack, which is one element where rows are not made of whole ones.
template <typename T, typename Unit>
__global__ void __launch_bounds__(kThreads)
    SiluMulKernel(const T* gate_up, int64_t count, int dim, T* y) {
  constexpr int kSize = sizeof(Unit) / sizeof(T);
  const int64_t at =
      (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kSize;
  if (at >= count) return;
  const T* row = gate_up + at / dim * 2 * dim + at % dim;
  const Unit gate = *reinterpret_cast<const Unit*>(row);
  const Unit up = *reinterpret_cast<const Unit*>(row + dim);
  Unit result;
  const T* g = reinterpret_cast<const T*>(&gate);
  const T* u = reinterpret_cast<const T*>(&up);
  T* r = reinterpret_cast<T*>(&result);
  for (int i = 0; i < kSize; ++i) {
    r[i] = FromFloat<T>(SiluTimes(ToFloat(g[i]), ToFloat(u[i])));
  }
  *reinterpret_cast<Unit*>(y + at) = result;
}

template <typename T, typename Unit>
CudaError LaunchSiluMul(const T* gate_up, int rows, int dim, T* y,
                        Stream stream) {
  constexpr int kPerBlock = kThreads * (sizeof(Unit) / sizeof(T));
  const int64_t count = static_cast<int64_t>(rows) * dim;
  if (count == 0) return kCudaSuccess;
  const auto blocks =
      static_cast<unsigned>((count + kPerBlock - 1) / kPerBlock);
  return Launch(SiluMulKernel<T, Unit>, {dim3{blocks}, dim3{kThreads}}, stream,
                gate_up, count, dim, y);
}

}  // namespace

template <typename T>
CudaError SiluMul(const T* gate_up, int rows, int dim, T* y, Stream stream) {
  const uintptr_t addresses =
      reinterpret_cast<uintptr_t>(gate_up) | reinterpret_cast<uintptr_t>(y);
  const bool packs = dim % Pack<T>::kSize == 0 && addresses % 16 == 0;
  return packs ? LaunchSiluMul<T, Pack<T>>(gate_up, rows, dim, y, stream)
               : LaunchSiluMul<T, T>(gate_up, rows, dim, y, stream);
}

template CudaError SiluMul(const float*, int, int, float*, Stream);
template CudaError SiluMul(const BFloat16*, int, int, BFloat16*, Stream);

}  // namespace lockstep::cuda
