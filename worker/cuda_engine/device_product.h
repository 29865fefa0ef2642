#pragma once

#include <absl/status/status.h>

#include <cstddef>

#include "kernels/cuda/product_args.h"
#include "worker/cuda_engine/weights/device_matrix.h"
#include "worker/device/cuda_stream.h"

namespace lockstep {

// Products of a step, put on a stream; an error names the kernel and the
// device. X and Y are those of cuda::ProductArgs.

// y [count, matrix.rows()] = x·matrixᵀ + bias, x [count, cols]; `bias` may be
// null.
template <typename X, typename Y>
absl::Status LaunchProduct(const DeviceMatrix& matrix, const float* bias,
                           const X* x, int count, Y* y, CudaStream* stream);

// Of one matrix without bias; rows of y are y_stride apart.
template <typename X, typename Y>
absl::Status LaunchProduct(const cuda::StoredMatrix& matrix, const X* x,
                           int count, Y* y, ptrdiff_t y_stride,
                           CudaStream* stream);

// Rows in groups, each multiplied by one of several matrices, whose parts are
// below those of the first: `matrix`.
template <typename X, typename Y>
absl::Status LaunchProducts(const DeviceMatrix& matrix,
                            const cuda::ProductGroups& groups, const X* x, Y* y,
                            CudaStream* stream);

}  // namespace lockstep
