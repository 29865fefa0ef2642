#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_types.h"

namespace lockstep::cuda {

// How a row of logits chooses; the fields of the request, with all defaults
// applied.
struct SampledRow {
  int32_t row;        // of the logits
  float temperature;  // 0: the best id
  uint32_t top_k;     // 0: all
  float top_p;
  float min_p;
  double noise;  // in [0, 1), of the request's seed and the position
};

// tokens[rows[i].row] = the token that the row chooses, of logits [_,
// vocabulary], rows `stride` floats apart, that AdjustLogits left; but where it
// is kNoFiniteLogit it stays so. `rows` [count] is in device memory, like all
// else.
//
// Chooses as the worker's sampler does, without a sort: temperature, top-k,
// top-p, min-p, then the id at which the running sum of the weights, in order
// of id, exceeds the noise times their sum. Better is the larger logit, of
// equal ones the lower id; NaN counts as minus infinity.
//
// Weights have the bits of the sampler's. It adds them up in fp64, rounded each
// time; here sums are exact, so that order and batch decide nothing. So the two
// choose alike but where rounding decides: where top_p or the noise times the
// sum lies within some 2^-53 of it, for each of the weights, of a running sum.
CudaError SampleTokens(const float* logits, int64_t stride, int vocabulary,
                       const SampledRow* rows, int count, uint32_t* tokens,
                       Stream stream);

}  // namespace lockstep::cuda
