#include "worker/models/decoder.h"

#include <algorithm>

#include "common/status_macros.h"
#include "worker/layers/attention.h"
#include "worker/layers/embedding.h"
#include "worker/layers/mlp.h"

namespace lockstep {

Decoder::Decoder(const RankContext& rank, const ModelWeights* weights,
                 const Limits& limits)
    : rank_(rank),
      weights_(weights),
      rope_(rank.config->rope, limits.positions),
      activations_(*rank.config, *rank.shard, limits.tokens),
      head_(rank, limits.logits_rows) {
  const Activations& a = activations_;
  rank.ops->ReserveProducts(
      std::max(limits.tokens, limits.logits_rows),
      std::max({a.hidden_size, a.q_size, a.intermediate}));
}

int64_t Decoder::Bytes(const ModelConfig& config, const Shard& shard,
                       const Limits& limits) {
  return Activations::Bytes(config, shard, limits.tokens) +
         RopeTable::Bytes(config.rope, limits.positions) +
         OutputHead::Bytes(config, shard, limits.logits_rows);
}

absl::Status Decoder::Forward(const DecoderInput& input,
                              absl::Span<const kernels::PagedKv> kv) {
  float* hidden = activations_.hidden.data();
  LOCKSTEP_RETURN_IF_ERROR(Embed(rank_, *weights_, input.token_ids, hidden));
  for (int i = 0; i < rank_.config->num_layers; ++i) {
    const LayerWeights& layer = weights_->layers[i];
    LOCKSTEP_RETURN_IF_ERROR(AttentionBlock(rank_, rank_.config->attention[i],
                                            layer, rope_, input.batch, kv[i],
                                            &activations_));
    LOCKSTEP_RETURN_IF_ERROR(
        MlpBlock(rank_, layer, input.batch.num_tokens, &activations_));
  }
  return head_.Forward(*weights_, hidden, input.logits_tokens);
}

}  // namespace lockstep
