#pragma once

#include "kernels/cuda/cuda_types.h"
#include "kernels/cuda/product_args.h"

namespace lockstep::cuda {

// The product with a matrix of F32, F16 or BF16. A sum is one chain over k, in
// fp32, whatever other rows there are. Made to be right: what faster products
// are held against, and what computes where there are none.
// kCudaInvalidValue for another type.
template <typename X, typename Y>
CudaError MultiplyDense(const ProductArgs<X, Y>& args, Stream stream);

// The same of rows in groups; a row has the bits that it has alone.
template <typename X, typename Y>
CudaError MultiplyDenseGroups(const ProductArgs<X, Y>& args,
                              const ProductGroups& groups, Stream stream);

}  // namespace lockstep::cuda
