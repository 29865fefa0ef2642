#pragma once

#include <cstddef>

#include "kernels/cuda/cuda_types.h"
#include "kernels/simd/gate.h"

namespace lockstep::cuda {

// y[i, j] = gate(x)·up, [rows, dim]; gate_up [rows, 2·dim] holds x, then up. T
// is float or BFloat16.
template <typename T>
CudaError GatedMul(kernels::Gate gate, const T* gate_up, int rows, int dim,
                   T* y, Stream stream);

// x = cap·tanh(x·scale / cap), or x·scale where cap is 0: what becomes of
// logits.
CudaError ScaleAndCap(float* x, size_t count, float scale, float cap,
                      Stream stream);

}  // namespace lockstep::cuda
