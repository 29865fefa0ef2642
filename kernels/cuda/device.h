#pragma once

// The one header of CUDA's that a kernel includes: with nvcc the language is
// the compiler's, else the emulation's. So the same source is built for GPUs
// and, as plain C++, for tests on machines without one.

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "kernels/cuda/emulation/cuda_language.h"
#include "kernels/cuda/emulation/launch.h"
#endif

#include <cstddef>

#include "kernels/cuda/cuda_types.h"

namespace lockstep::cuda {

inline constexpr int kWarpLanes = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;  // dynamic, a block
};

// A block's dynamic shared memory, 16-byte aligned.
template <typename T>
__device__ T* DynamicShared() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) unsigned char dynamic_shared[];
  return reinterpret_cast<T*>(dynamic_shared);
#else
  return static_cast<T*>(emulation::SharedMemory());
#endif
}

// kernel<<<…>>>(args…), as both compilers take it; see emulation/launch.h for
// when it runs there.
template <typename... Parameters, typename... Arguments>
CudaError Launch(void (*kernel)(Parameters...), const LaunchShape& shape,
                 Stream stream, const Arguments&... args) {
#ifdef __CUDACC__
  constexpr size_t kWithoutAsking = 48 * 1024;
  if (shape.shared_bytes > kWithoutAsking) {
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
        static_cast<int>(shape.shared_bytes));
    if (error != cudaSuccess) return error;
  }
  kernel<<<shape.grid, shape.block, shape.shared_bytes, stream>>>(
      static_cast<Parameters>(args)...);
  return cudaGetLastError();
#else
  return emulation::LaunchGrid(
      stream, {shape.grid, shape.block, shape.shared_bytes},
      [=] { kernel(static_cast<Parameters>(args)...); });
#endif
}

}  // namespace lockstep::cuda
