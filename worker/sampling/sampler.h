#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "proto/sampling.pb.h"
#include "worker/core/sequence.h"
#include "worker/sampling/candidates.h"
#include "worker/sampling/logit_adjustments.h"
#include "worker/sampling/logit_blocks.h"
#include "worker/sampling/top_logprobs.h"

namespace lockstep {

// Chooses tokens from logits. A pure function of the logits, the sequence's
// tokens and its parameters: the noise of an output token is a counter-based
// generator keyed by (seed, choice, position in the output), so every rank
// draws the same and a preempted or resumed sequence goes on as it would have.
//
//   Sampler sampler(vocab_size);
//   const uint32_t token = sampler.Sample(logits, sequence);
//   const v1::PositionLogprobs logprobs = sampler.Logprobs(logits, token, 5);
//
// Order: bias; repetition, presence and frequency penalties; min_tokens masks
// the stop ids; greedy, or: temperature, top-k, top-p, min-p, then the draw.
// NaN counts as minus infinity; ties go to the lower id. Where everything is
// minus infinity all ids are equally good.
//
// Logits are read where they lie, and copied where something adjusts them.
// Holds scratch for one thread; make one a thread. Sample allocates nothing.
class Sampler {
 public:
  explicit Sampler(int vocab_size);

  // logits [vocab_size] fp32 of the sequence's last token.
  uint32_t Sample(absl::Span<const float> logits, const Sequence& sequence);

  // Of `token` and the `k` most probable ids, from the logits as they are.
  v1::PositionLogprobs Logprobs(absl::Span<const float> logits, uint32_t token,
                                int k);

 private:
  std::vector<float> adjusted_;  // [vocab_size]
  LogitAdjustments adjustments_;
  LogitBlocks blocks_;
  Candidates candidates_;
  TopLogprobs top_logprobs_;
};

}  // namespace lockstep
