#pragma once

#include <cstdint>

namespace lockstep::kernels {

// The tokens of a step, in batch order: the sequences' tokens follow each
// other.
struct TokenBatch {
  int num_tokens = 0;
  const int32_t* positions = nullptr;    // [num_tokens] in its sequence, from 0
  const int32_t* sequence_of = nullptr;  // [num_tokens] index into page_tables
  const int32_t* const* page_tables =
      nullptr;  // [num_sequences] pages in order
};

}  // namespace lockstep::kernels
