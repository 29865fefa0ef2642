#pragma once

#include <absl/status/status.h>

#include "worker/layers/activations.h"
#include "worker/layers/rank_context.h"
#include "worker/weights/model_weights.h"

namespace lockstep {

// RMS norm of all of q and of all of k, of the first `tokens` rows of qkv.
// Their heads lie on several ranks, so the heads' sums of squares are
// exchanged, one small all-reduce, and added in order of the heads: the same
// bits on any number of ranks.
absl::Status NormProjections(const RankContext& rank,
                             const LayerWeights& weights, int tokens,
                             Activations* activations);

}  // namespace lockstep
