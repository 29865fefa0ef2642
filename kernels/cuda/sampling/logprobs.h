#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_types.h"

namespace lockstep::cuda {

// The most probable ids that a row may be asked for.
inline constexpr int kMostTop = 20;

// In place of a token: the one that the row chose.
inline constexpr uint32_t kChosenToken = 0xffffffff;

struct ScoredRow {
  int32_t row;      // of the logits
  uint32_t token;   // or kChosenToken
  int32_t num_top;  // at most kMostTop
};

// What log-probabilities are made of. With the logit of an id, or minus
// infinity for no number, that is
//   logit - max - log(sum), where logit - max is 0 for equal ones.
struct RowLogprobs {
  float max;
  float token_logit;
  uint32_t token_rank;  // 1 for the best, ties by lower id
  int32_t num_top;      // fewer than asked for where the vocabulary is small
  // Of exp(logit - max), in units of 2^-80: exact, where the worker's sampler
  // rounds each addition in fp64. So before it is rounded to fp32 a
  // log-probability is within some 1e-12 of the sampler's.
  uint64_t sum_high, sum_low;
  uint32_t top_ids[kMostTop];  // the best first
  float top_logits[kMostTop];
};

// out[i] = of rows[i], from logits [_, vocabulary], rows `stride` floats apart.
// `tokens` has the chosen ones by row of the logits; where the one that is
// scored is kNoFiniteLogit, out[i] is left as it is. All is in device memory.
CudaError ScoreRows(const float* logits, int64_t stride, int vocabulary,
                    const ScoredRow* rows, int count, const uint32_t* tokens,
                    RowLogprobs* out, Stream stream);

}  // namespace lockstep::cuda
