#pragma once

#include "kernels/cuda/cuda_types.h"
#include "kernels/cuda/product_args.h"

namespace lockstep::cuda {

// The product with a matrix of a quantized type. Weights are decoded where they
// are used, as kernels::DecodeRow does it; sums are in fp32, each a function of
// its own row of x. Made for few rows, where reading the weights is the cost,
// and as what faster products are held against. kCudaInvalidValue for another
// type, or columns that are no whole blocks.
template <typename X, typename Y>
CudaError MultiplyStored(const ProductArgs<X, Y>& args, Stream stream);

// The same of rows in groups; a row has the bits that it has alone.
template <typename X, typename Y>
CudaError MultiplyStoredGroups(const ProductArgs<X, Y>& args,
                               const ProductGroups& groups, Stream stream);

}  // namespace lockstep::cuda
