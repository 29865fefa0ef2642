#pragma once

#include "kernels/cuda/cuda_types.h"

namespace lockstep::cuda {

// y = x / sqrt(mean(x²) + eps)·weight, row by row, in fp32; X and Y are float
// or BFloat16, but Y is no float where X is BFloat16. Rows follow each other. y
// may be x.
template <typename X, typename Y>
struct RmsNormArgs {
  const X* x;           // [rows, dim]
  const float* weight;  // [dim]
  float eps;
  Y* y;  // [rows, dim]
  int rows;
  int dim;
};

template <typename X, typename Y>
CudaError RmsNorm(const RmsNormArgs<X, Y>& args, Stream stream);

// residual += args.x, rounded to X, and then y = norm(residual).
template <typename X, typename Y>
CudaError AddRmsNorm(X* residual, const RmsNormArgs<X, Y>& args, Stream stream);

}  // namespace lockstep::cuda
