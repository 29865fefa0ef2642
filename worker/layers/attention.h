#pragma once

#include <absl/status/status.h>

#include "kernels/attention/paged_kv.h"
#include "kernels/ops.h"
#include "worker/layers/activations.h"
#include "worker/layers/rank_context.h"
#include "worker/layers/rope_table.h"
#include "worker/weights/model_weights.h"

namespace lockstep {

// The attention half of a decoder layer: hidden += o(attention(qkv(norm(
// hidden)))), as `layer` says. The batch's keys and values are stored in `kv`
// first, so tokens see earlier ones of the same step. `rope` is the layer's.
// One all-reduce, and one more, small, where whole projections are normed.
absl::Status AttentionBlock(const RankContext& rank, const LayerConfig& layer,
                            const LayerWeights& weights, const RopeTable& rope,
                            const kernels::TokenBatch& batch,
                            const kernels::PagedKv& kv,
                            Activations* activations);

}  // namespace lockstep
