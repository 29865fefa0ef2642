#pragma once

#include <absl/types/span.h>

#include <cstddef>

namespace lockstep {

// Logits, and what is made of them one by one, in blocks of so many; the last
// may be shorter.
inline constexpr size_t kLogitBlock = 64;

constexpr size_t NumLogitBlocks(size_t logits) {
  return (logits + kLogitBlock - 1) / kLogitBlock;
}

// The passes over a row of logits that sampling consists of, for an instruction
// set. NaN counts as minus infinity.
//
// Made of additions and multiplications only, in an order that the source
// fixes, so the bits are the same on every machine and instruction set; the C
// library's exp takes other instructions on other processors.
struct LogitPasses {
  const char* isa;

  // maxima[b] = the largest logit of block b. `maxima` has one entry a block.
  void (*block_maxima)(absl::Span<const float> logits,
                       absl::Span<float> maxima);

  // weights[i] = exp((logits[i] - max) * scale): the numerators of a softmax, 1
  // for the largest logit even where it is infinite, 0 below e^-87. Within 2e-7
  // of the exact value, and never above 1. `weights` may be `logits`.
  // REQUIRES: `max` is the largest logit; scale > 0; equal sizes.
  void (*exp_weights)(absl::Span<const float> logits, float max, float scale,
                      absl::Span<float> weights);

  // sums[b] = the sum of block b, in lanes that a tree adds.
  void (*block_sums)(absl::Span<const float> weights, absl::Span<double> sums);
};

// What this machine has, the widest last.
absl::Span<const LogitPasses> AllLogitPasses();

// The widest.
const LogitPasses& GetLogitPasses();

}  // namespace lockstep
