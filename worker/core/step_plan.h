#pragma once

#include <cstdint>
#include <vector>

#include "common/digest.h"
#include "worker/core/sequence.h"

namespace lockstep {

// One sequence's share of a step: its tokens at positions begin … begin +
// count - 1 are computed, over the pages of `sequence`.
struct SequenceSpan {
  // Valid until the scheduler is called again.
  const Sequence* sequence = nullptr;
  int begin = 0;
  int count = 0;
  // The last token is not known yet: this span of the step planned before,
  // which is in flight, samples it. -1: all are known.
  int token_from = -1;
  // The span ends at the sequence's last token, so its last logits choose the
  // next one.
  bool samples = false;
  // The same of a sequence that is embedded: the span completes its embedding.
  bool embeds = false;
  // Prompt positions whose logits are wanted for prompt log-probabilities:
  // logits of position p describe prompt token p + 1, so never the position
  // that chooses the next token. Empty when equal.
  int prompt_logits_begin = 0;
  int prompt_logits_end = 0;

  int num_logits_rows() const {
    return prompt_logits_end - prompt_logits_begin + (samples ? 1 : 0);
  }
};

// What one step computes, in batch order. The same on every rank; `digest`
// covers it, every plan before it and every id that was sampled in a step
// committed before it.
struct StepPlan {
  uint64_t step = 0;
  std::vector<SequenceSpan> spans;
  int num_tokens = 0;       // over the spans
  int num_logits_rows = 0;  // over the spans
  Digest digest = {};

  bool empty() const { return spans.empty(); }
};

}  // namespace lockstep
