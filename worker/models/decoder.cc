#include "worker/models/decoder.h"

#include <algorithm>
#include <cstddef>

#include "common/status_macros.h"
#include "worker/layers/attention.h"
#include "worker/layers/embedding.h"
#include "worker/layers/mlp.h"

namespace lockstep {
namespace {

int LocalPositions(const ModelConfig& config, const Decoder::Limits& limits) {
  const bool used =
      std::any_of(config.layers.begin(), config.layers.end(),
                  [](const LayerConfig& layer) { return layer.local_rope; });
  return used ? limits.positions : 0;
}

}  // namespace

Decoder::Decoder(const RankContext& rank, const ModelWeights* weights,
                 const Limits& limits)
    : rank_(rank),
      weights_(weights),
      rope_(rank.config->rope, limits.positions),
      local_rope_(rank.config->local_rope,
                  LocalPositions(*rank.config, limits)),
      activations_(*rank.config, *rank.shard, limits.tokens),
      experts_(rank, limits.tokens),
      head_(rank, limits.logits_rows) {
  const Activations& a = activations_;
  const Shard& shard = *rank.shard;
  const int rows_per_token =
      std::max(1, rank.config->experts.experts_per_token);
  rank.ops->ReserveProducts(
      std::max(limits.tokens * rows_per_token, limits.logits_rows),
      std::max({a.hidden_size, a.q_size, shard.mlp.size(), shard.expert.size(),
                shard.shared_expert.size()}));
}

int64_t Decoder::Bytes(const ModelConfig& config, const Shard& shard,
                       const Limits& limits) {
  return Activations::Bytes(config, shard, limits.tokens) +
         RopeTable::Bytes(config.rope, limits.positions) +
         RopeTable::Bytes(config.local_rope, LocalPositions(config, limits)) +
         ExpertsBlock::Bytes(config, limits.tokens) +
         OutputHead::Bytes(config, shard, limits.logits_rows);
}

absl::Status Decoder::Forward(const DecoderInput& input,
                              absl::Span<const kernels::PagedKv> kv) {
  float* hidden = activations_.hidden.data();
  LOCKSTEP_RETURN_IF_ERROR(Embed(rank_, *weights_, input.token_ids, hidden));
  for (int i = 0; i < rank_.config->num_layers; ++i) {
    const LayerConfig& layer = rank_.config->layers[i];
    const LayerWeights& weights = weights_->layers[i];
    const int tokens = input.batch.num_tokens;
    LOCKSTEP_RETURN_IF_ERROR(AttentionBlock(
        rank_, layer, weights, layer.local_rope ? local_rope_ : rope_,
        input.batch, kv[i], &activations_));
    LOCKSTEP_RETURN_IF_ERROR(
        layer.has_experts ? experts_.Forward(weights, tokens, &activations_)
                          : MlpBlock(rank_, weights, tokens, &activations_));
  }
  return head_.Forward(*weights_, hidden, input.logits_tokens);
}

const float* Decoder::HiddenStates(int first, int count) {
  Activations& a = activations_;
  const ptrdiff_t begin = ptrdiff_t{first} * a.hidden_size;
  float* const normed = a.normed.data() + begin;
  rank_.ops->RmsNorm(a.hidden.data() + begin, a.hidden_size, count,
                     a.hidden_size, weights_->final_norm.data(),
                     rank_.config->norm_eps, normed, a.hidden_size);
  return normed;
}

}  // namespace lockstep
