#pragma once

#include <absl/status/status.h>

#include "worker/layers/activations.h"
#include "worker/layers/rank_context.h"
#include "worker/weights/model_weights.h"

namespace lockstep {

// output = down(gate·up) as below, both of input, of a rank's slice that is
// `intermediate` wide; input and output [tokens, hidden_size].
void MultiplyMlp(const RankContext& rank, const MlpWeights& weights,
                 int intermediate, const float* input, int tokens,
                 Activations* activations, float* output);

// The other half of a decoder layer: hidden += down(gate·up), where gate has
// passed its activation and both are of norm(hidden), for the first `tokens`
// rows. One all-reduce.
absl::Status MlpBlock(const RankContext& rank, const LayerWeights& weights,
                      int tokens, Activations* activations);

}  // namespace lockstep
