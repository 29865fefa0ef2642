#pragma once

#include <cstddef>

#include "proto/sampling.pb.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"

namespace lockstep {

// What of a step is left to the host by a device that chooses tokens, and
// scores them. Such a step is committed before another one is launched:
// docs/overlap.md. Functions of the plan and its sequences alone, so scheduler
// and engine agree on it, on every rank.

// Such a device has room for so many ids of each sequence that have a bias, or
// stop it and must not come yet.
inline constexpr size_t kMostDeviceAdjustments = 4096;

bool HasPenalties(const v1::ResolvedSampling& sampling);

// Whether its stop ids must not come yet.
bool MasksStopIds(const Sequence& sequence);

// Whether it may choose some ids alone, or not all: allowed_token_ids and bad
// words.
bool KeepsIdsOut(const v1::ResolvedSampling& sampling);

// Whether a bias, a penalty, bad words or min_tokens changes its logits.
bool ChangesLogits(const Sequence& sequence);

// Whether, without a mask, its next token is the id of the largest of the
// logits as they are.
bool TakesLargest(const Sequence& sequence);

// Whether the host has a part in the token that the span samples: it counts
// those before for penalties, finds the grammar's mask, or samples where the
// device may have no room, or where ids are kept out. Does not change while the
// sequence runs.
bool SamplesWithHost(const SequenceSpan& span);

// Whether it has a part in the span: that, or an embedding.
bool NeedsHost(const SequenceSpan& span);

}  // namespace lockstep
