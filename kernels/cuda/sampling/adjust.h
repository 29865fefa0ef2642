#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_types.h"

namespace lockstep::cuda {

// What a request does to the logit of an id, in this order.
struct LogitAdjustment {
  uint32_t id;
  float bias;            // added
  uint32_t count;        // of the id in the output
  uint8_t is_penalized;  // it is in the output, or counts in the prompt
  uint8_t is_masked;     // becomes minus infinity, as min_tokens asks
};

// Repetition divides a positive logit and multiplies others; presence, and
// frequency times the count, are subtracted where the count is not 0.
struct AdjustedRow {
  int32_t row;   // of the logits
  int32_t mask;  // words before its own; -1: none
  int32_t first_adjustment;
  int32_t num_adjustments;  // of different ids
  int32_t masks_ids;        // whether some of them do
  float repetition;
  float presence;
  float frequency;
};

struct AdjustArgs {
  float* logits;  // [_, vocabulary]
  int64_t stride;
  int vocabulary;
  const AdjustedRow* rows;  // [count], of different rows
  int count;
  const LogitAdjustment* adjustments;
  const uint32_t* masks;  // a bit an id, the lowest first
  float* kept;            // as many as adjustments
};

// Masks and adjusts logits where they lie, with the bits of the worker's
// sampler: first what the mask forbids becomes minus infinity, and the rest is
// at least -1e30; then come the adjustments. Where they mask ids and leave
// nothing but minus infinities they are undone. `kept` holds what they
// replaced.
CudaError AdjustLogits(const AdjustArgs& args, Stream stream);

// Undoes the adjustments, not the masks. The arguments of AdjustLogits.
CudaError RestoreLogits(const AdjustArgs& args, Stream stream);

}  // namespace lockstep::cuda
