#pragma once

#include "kernels/cuda/cuda_types.h"

namespace lockstep::cuda {

// y = x / sqrt(mean(x²) + eps)·weight, row by row, in fp32; T is float or
// BFloat16. Rows follow each other. y may be x.
template <typename T>
struct RmsNormArgs {
  const T* x;           // [rows, dim]
  const float* weight;  // [dim]
  float eps;
  T* y;  // [rows, dim]
  int rows;
  int dim;
};

template <typename T>
CudaError RmsNorm(const RmsNormArgs<T>& args, Stream stream);

// residual += args.x, rounded to T, and then y = norm(residual).
template <typename T>
CudaError AddRmsNorm(T* residual, const RmsNormArgs<T>& args, Stream stream);

}  // namespace lockstep::cuda
