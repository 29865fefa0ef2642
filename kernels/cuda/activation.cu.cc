#include "kernels/cuda/activation.h"

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/bfloat16.h"
#include "kernels/cuda/device.h"
#include "kernels/simd/lanes.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;

using kernels::Gate;

// Both are x / (1 + e^y): see kernels/simd/lanes.h.
template <Gate kGate>
__device__ float Gated(float x, float up) {
  const float y = kGate == Gate::kSilu ? -x
                                       : x * fmaf(x * x, kernels::kGeluCubic,
                                                  kernels::kGeluLinear);
  return x / (1 + expf(y)) * up;
}

// A thread a pack, which is one element where rows are not made of whole ones.
template <Gate kGate, typename T, typename Unit>
__global__ void __launch_bounds__(kThreads)
    GatedMulKernel(const T* gate_up, int64_t count, int dim, T* y) {
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
    r[i] = FromFloat<T>(Gated<kGate>(ToFloat(g[i]), ToFloat(u[i])));
  }
  *reinterpret_cast<Unit*>(y + at) = result;
}

template <Gate kGate, typename T, typename Unit>
CudaError LaunchGatedMul(const T* gate_up, int rows, int dim, T* y,
                         Stream stream) {
  constexpr int kPerBlock = kThreads * (sizeof(Unit) / sizeof(T));
  const int64_t count = static_cast<int64_t>(rows) * dim;
  if (count == 0) return kCudaSuccess;
  const auto blocks =
      static_cast<unsigned>((count + kPerBlock - 1) / kPerBlock);
  return Launch(GatedMulKernel<kGate, T, Unit>, {dim3{blocks}, dim3{kThreads}},
                stream, gate_up, count, dim, y);
}

template <Gate kGate, typename T>
CudaError LaunchGatedMul(const T* gate_up, int rows, int dim, T* y,
                         Stream stream) {
  const uintptr_t addresses =
      reinterpret_cast<uintptr_t>(gate_up) | reinterpret_cast<uintptr_t>(y);
  const bool packs = dim % Pack<T>::kSize == 0 && addresses % 16 == 0;
  return packs
             ? LaunchGatedMul<kGate, T, Pack<T>>(gate_up, rows, dim, y, stream)
             : LaunchGatedMul<kGate, T, T>(gate_up, rows, dim, y, stream);
}

__global__ void __launch_bounds__(kThreads)
    ScaleAndCapKernel(float* x, size_t count, float scale, float cap) {
  const size_t at = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= count) return;
  const float scaled = x[at] * scale;
  x[at] = cap == 0 ? scaled : cap * tanhf(scaled / cap);
}

}  // namespace

template <typename T>
CudaError GatedMul(Gate gate, const T* gate_up, int rows, int dim, T* y,
                   Stream stream) {
  return gate == Gate::kSilu
             ? LaunchGatedMul<Gate::kSilu>(gate_up, rows, dim, y, stream)
             : LaunchGatedMul<Gate::kGeluTanh>(gate_up, rows, dim, y, stream);
}

CudaError ScaleAndCap(float* x, size_t count, float scale, float cap,
                      Stream stream) {
  if (count == 0) return kCudaSuccess;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  return Launch(ScaleAndCapKernel, {dim3{blocks}, dim3{kThreads}}, stream, x,
                count, scale, cap);
}

template CudaError GatedMul(Gate, const float*, int, int, float*, Stream);
template CudaError GatedMul(Gate, const BFloat16*, int, int, BFloat16*, Stream);

}  // namespace lockstep::cuda
