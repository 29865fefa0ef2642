#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/cuda_types.h"
#include "kernels/weights/dtype.h"

namespace lockstep::cuda {

// A weight matrix [rows, cols] as a GGUF file stores it, in device memory.
struct StoredMatrix {
  kernels::DType type;  // kQ8_0, kQ4_0 or kQ4_K
  const uint8_t* data;  // rows of RowBytes(type, cols) bytes, 2-byte aligned
  int rows;
  int cols;
};

// y[i, j] = Σ_k x[i, k]·w[j, k], x [count, w.cols], y [count, w.rows], T float
// or BFloat16. Weights are decoded where they are used, exactly; sums are in
// fp32, each a function of its own row of x. Made for few rows, where reading
// the weights is the cost, and as what faster products are held against.
// kCudaInvalidValue for another type, or columns that are no whole blocks.
template <typename T>
CudaError MultiplyStored(const StoredMatrix& w, const T* x, int count, T* y,
                         Stream stream);

}  // namespace lockstep::cuda
