#pragma once

#include "proto/sampling.pb.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"

namespace lockstep {

// What of a step is left to the host by a device that chooses the largest of a
// row of logits, and nothing else. Such a step is committed before another one
// is launched: docs/overlap.md. Functions of the plan and its sequences alone,
// so scheduler and engine agree on it, on every rank.

bool HasPenalties(const v1::ResolvedSampling& sampling);

// Whether its stop ids must not come yet.
bool MasksStopIds(const Sequence& sequence);

// Whether a bias, a penalty or min_tokens changes its logits.
bool ChangesLogits(const Sequence& sequence);

// Whether, without a mask, its next token is the id of the largest of the
// logits as they are.
bool TakesLargest(const Sequence& sequence);

// Whether the token that the span samples is more than that, or its
// log-probabilities are wanted.
bool SamplesOnHost(const SequenceSpan& span);

// Whether the host makes anything of the span: a token, log-probabilities, an
// embedding.
bool NeedsHost(const SequenceSpan& span);

}  // namespace lockstep
