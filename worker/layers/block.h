#pragma once

#include <absl/status/status.h>

#include <vector>

#include "worker/layers/activations.h"
#include "worker/layers/rank_context.h"

namespace lockstep {

// How each half of a decoder layer begins and ends. `norm` may be empty: there
// is none.

// What the half reads: hidden, normed or as it is, for the first `tokens` rows.
const float* BlockInput(const RankContext& rank, const std::vector<float>& norm,
                        int tokens, Activations* activations);

// hidden += norm(delta), times residual_scale. delta is all ranks' sum.
void AddToResidual(const RankContext& rank, const std::vector<float>& norm,
                   int tokens, Activations* activations);

// The same where delta is this rank's part of the sum. One all-reduce.
absl::Status SumIntoResidual(const RankContext& rank,
                             const std::vector<float>& norm, int tokens,
                             Activations* activations);

}  // namespace lockstep
