#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_types.h"

namespace lockstep::cuda {

// In place of the id that a row of logits chooses: none of them is a finite
// number. No embedding has a row of that id.
inline constexpr uint32_t kNoFiniteLogit = 0xfffffffe;

// ids[i] = where row i of logits [rows, vocabulary] is largest, rows `stride`
// floats apart: the greedy choice. NaN counts as minus infinity, ties go to the
// lower id, as in the worker's sampler. kNoFiniteLogit of a row that has none.
CudaError ArgMax(const float* logits, int64_t stride, int rows, int vocabulary,
                 uint32_t* ids, Stream stream);

}  // namespace lockstep::cuda
