#pragma once

#include "worker/core/step_plan.h"
#include "worker/scheduler/scheduled_sequence.h"

namespace lockstep {

// The largest part of what `scheduled` has to compute after the steps in
// flight, of a prefill or a decode, that takes at most `max_tokens` tokens and
// `max_rows` rows of logits; its count may be less than 1 where there is none.
// Rows are taken by prompt positions whose log-probabilities are wanted, and by
// the last token, unless the sequence is embedded.
// REQUIRES: max_tokens >= 1, max_rows >= 0.
SequenceSpan NextSpan(const ScheduledSequence& scheduled, int max_tokens,
                      int max_rows);

}  // namespace lockstep
