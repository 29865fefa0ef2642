#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/weights/dtype.h"

namespace lockstep::cuda {

// A weight matrix [rows, cols] as files store it, in device memory.
struct StoredMatrix {
  kernels::DType type = kernels::DType::kF32;
  // rows of RowBytes(type, cols) bytes; a multiple of its floats' size, else of
  // 2.
  const uint8_t* data = nullptr;
  int rows = 0;
  int cols = 0;
};

// y[i, j] = Σ_k x[i, k]·w[j, k] + bias[j]. X and Y are float or BFloat16, but
// Y is no BFloat16 where X is float.
template <typename X, typename Y>
struct ProductArgs {
  StoredMatrix w;
  const float* bias;  // [w.rows], or null: none
  const X* x;         // [count, w.cols]
  int count;
  Y* y;  // [count, w.rows], rows y_stride elements apart
  ptrdiff_t y_stride;
};

}  // namespace lockstep::cuda
