#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "proto/sampling.pb.h"
#include "worker/core/sequence.h"
#include "worker/sampling/candidates.h"
#include "worker/sampling/logit_adjustments.h"
#include "worker/sampling/logit_blocks.h"
#include "worker/sampling/token_mask.h"
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
// A grammar's mask, a bit for each id from the lowest of the first word on,
// goes before all else: what it forbids is never chosen, and is as if it had no
// probability. allowed_token_ids narrow it, unless nothing would be left of it.
//
// Order: the mask; bias; repetition, presence and frequency penalties; bad
// words; min_tokens masks the stop ids; greedy, or: temperature, top-k, top-p,
// min-p, then the draw. NaN counts as masked, as does minus infinity; ties go
// to the lower id. Where min_tokens and bad words leave nothing, all of these
// are undone, but for the mask.
//
// Logits are read where they lie, and copied where something adjusts them.
// Holds scratch for one thread; make one a thread. Sample allocates nothing.
class Sampler {
 public:
  explicit Sampler(int vocab_size);

  // Whether some logit is a finite number. Where none is, the model has failed,
  // and nothing can be chosen.
  static bool CanSample(absl::Span<const float> logits);

  // logits [vocab_size] fp32 of the sequence's last token. No mask: all ids may
  // be chosen. REQUIRES: CanSample(logits), and a mask with an id in it.
  uint32_t Sample(absl::Span<const float> logits, const Sequence& sequence,
                  TokenMask mask = {});

  // Of `token` and the `k` most probable ids, from the logits as they are; with
  // a mask, of those in it.
  v1::PositionLogprobs Logprobs(absl::Span<const float> logits, uint32_t token,
                                int k, TokenMask mask = {});

 private:
  // Of the mask those that the request allows, as long as the next call of it.
  TokenMask Narrowed(TokenMask mask, const v1::ResolvedSampling& sampling);
  absl::Span<const float> Adjusted(absl::Span<const float> logits,
                                   const Sequence& sequence, TokenMask mask);

  std::vector<float> adjusted_;    // [vocab_size]
  std::vector<uint32_t> allowed_;  // a bit for each id
  LogitAdjustments adjustments_;
  LogitBlocks blocks_;
  Candidates candidates_;
  TopLogprobs top_logprobs_;
};

}  // namespace lockstep
