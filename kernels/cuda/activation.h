#pragma once

#include "kernels/cuda/cuda_types.h"

namespace lockstep::cuda {

// y[i, j] = silu(gate)·up, [rows, dim]; gate_up [rows, 2·dim] holds gate, then
// up. T is float or BFloat16.
template <typename T>
CudaError SiluMul(const T* gate_up, int rows, int dim, T* y, Stream stream);

}  // namespace lockstep::cuda
