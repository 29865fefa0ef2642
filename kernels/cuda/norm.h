#pragma once

#include <cstddef>

#include "kernels/cuda/cuda_types.h"

namespace lockstep::cuda {

// y = x / sqrt(mean(x²) + eps)·weight, row by row, in fp32; X and Y are float
// or BFloat16, but Y is no float where X is BFloat16. Rows follow each other. y
// may be x. Without weights there is no norm: y is x as Y.
template <typename X, typename Y>
struct RmsNormArgs {
  const X* x;           // [rows, dim]
  const float* weight;  // [dim], or null
  float eps;
  Y* y;  // [rows, dim]
  int rows;
  int dim;
};

template <typename X, typename Y>
CudaError RmsNorm(const RmsNormArgs<X, Y>& args, Stream stream);

// residual += scale·args.x, rounded to X, and then y = norm(residual).
template <typename X, typename Y>
CudaError AddRmsNorm(X* residual, float scale, const RmsNormArgs<X, Y>& args,
                     Stream stream);

// Of the query heads, or the key heads, of a model those that a rank counts:
// `count` of them from `first` on, side by side from element `offset` of its
// row on.
struct HeadRun {
  int heads;  // of all ranks
  int first;
  int count;
  ptrdiff_t offset;
};

// squares[i, h] = Σ x² over the elements of head h in row i, or 0 of a head
// that the rank does not count: so that the sum over ranks has all of them.
// squares [rows, queries.heads + keys.heads]; x has rows `stride` elements
// apart. T is float or BFloat16.
template <typename T>
CudaError HeadSquares(const T* x, ptrdiff_t stride, int rows, int head_dim,
                      const HeadRun& queries, const HeadRun& keys,
                      float* squares, Stream stream);

// Elements that are normed as a part of something longer, of `heads` heads of
// head_dim whose sums of squares are known: they are added in the heads' order.
template <typename T>
struct PartNormArgs {
  T* x;  // [rows, count], rows `stride` elements apart; changed in place
  ptrdiff_t stride;
  int rows;
  int count;
  const float* weight;   // [count]
  const float* squares;  // [rows, heads], rows squares_stride apart
  ptrdiff_t squares_stride;
  int heads;
  int head_dim;
  float eps;
};

template <typename T>
CudaError NormPart(const PartNormArgs<T>& args, Stream stream);

}  // namespace lockstep::cuda
