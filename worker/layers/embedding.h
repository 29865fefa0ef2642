#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstdint>

#include "worker/layers/rank_context.h"
#include "worker/weights/model_weights.h"

namespace lockstep {

// hidden [ids.size(), hidden_size] gets the ids' rows of the embedding, scaled
// as the model has it. A rank reads those it holds and leaves zeros for the
// others; one all-reduce.
absl::Status Embed(const RankContext& rank, const ModelWeights& weights,
                   absl::Span<const uint32_t> ids, float* hidden);

}  // namespace lockstep
