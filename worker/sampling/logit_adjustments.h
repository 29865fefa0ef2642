#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "worker/core/sequence.h"

namespace lockstep {

// What a request does to logits before a token is chosen, in this order:
//   bias         logit + bias
//   repetition   logit / penalty where positive, else logit * penalty, of ids
//   in
//                the prompt or the output (Keskar et al., "CTRL", section 4.1)
//   presence     logit - penalty, of ids in the output
//   frequency    logit - penalty * count, of ids in the output
//   bad words    the last id of one becomes minus infinity where the output
//                ends with its others
//   min_tokens   stop ids become minus infinity until the output is so long
//
//   LogitAdjustments adjustments(vocab_size);
//   if (ChangesLogits(sequence)) {
//     adjustments.Apply(sequence, absl::MakeSpan(logits));
//   }
//
// Holds scratch for one thread. Costs as much as the sequence has tokens where
// a penalty is set, else next to nothing.
class LogitAdjustments {
 public:
  explicit LogitAdjustments(int vocab_size);

  // See ChangesLogits for whether it changes anything. REQUIRES: every id of
  // the sequence and its parameters, and logits.size(), is in the vocabulary.
  void Apply(const Sequence& sequence, absl::Span<float> logits);

 private:
  void ApplyPenalties(const Sequence& sequence, absl::Span<float> logits);

  std::vector<uint32_t> counts_;  // [vocab_size], zero between calls
};

}  // namespace lockstep
