#include "worker/layers/attention.h"

#include "common/status_macros.h"
#include "worker/layers/block.h"
#include "worker/layers/projection_norm.h"

namespace lockstep {
namespace {

const float* DataOrNull(const std::vector<float>& weights) {
  return weights.empty() ? nullptr : weights.data();
}

// Norms, where each head has its own, and rotates q and k.
void NormRope(const RankContext& rank, const LayerConfig& layer,
              const LayerWeights& weights, const RopeTable& rope,
              const kernels::TokenBatch& batch, Activations* activations) {
  Activations& a = *activations;
  const ModelConfig& config = *rank.config;
  const RopeConfig& angles = layer.local_rope ? config.local_rope : config.rope;
  const auto norm_rope = [&](float* x, int heads,
                             const std::vector<float>& norm) {
    rank.ops->NormRope(x, a.q_size + 2 * a.kv_size, heads, config.head_dim,
                       config.qk_norm ? DataOrNull(norm) : nullptr,
                       config.norm_eps, angles.style,
                       layer.has_rope ? angles.rotary_dim : 0, rope.cos(),
                       rope.sin(), batch);
  };
  norm_rope(a.qkv.data(), rank.shard->num_heads(), weights.q_norm);
  norm_rope(a.qkv.data() + a.q_size, rank.shard->num_kv_heads(),
            weights.k_norm);
}

}  // namespace

absl::Status AttentionBlock(const RankContext& rank, const LayerConfig& layer,
                            const LayerWeights& weights, const RopeTable& rope,
                            const kernels::TokenBatch& batch,
                            const kernels::PagedKv& kv,
                            Activations* activations) {
  const ModelConfig& config = *rank.config;
  const Shard& shard = *rank.shard;
  Activations& a = *activations;
  kernels::Ops& ops = *rank.ops;
  const int tokens = batch.num_tokens;
  const ptrdiff_t qkv_stride = a.q_size + 2 * a.kv_size;
  float* q = a.qkv.data();
  float* k = q + a.q_size;
  float* v = k + a.kv_size;

  const float* input =
      BlockInput(rank, weights.attention_norm, tokens, activations);
  ops.Gemm(weights.qkv, input, a.hidden_size, tokens, q, qkv_stride,
           DataOrNull(weights.qkv_bias));
  if (config.projection_norm) {
    LOCKSTEP_RETURN_IF_ERROR(
        NormProjections(rank, weights, tokens, activations));
  }
  NormRope(rank, layer, weights, rope, batch, activations);
  ops.StoreKv(k, qkv_stride, v, qkv_stride, batch, kv);
  ops.Attention(q, qkv_stride, shard.num_heads(), shard.kv_head_of.data(),
                {config.query_scale, config.score_cap, layer.window}, batch, kv,
                a.attention.data(), a.q_size);
  ops.Gemm(weights.o, a.attention.data(), a.q_size, tokens, a.delta.data(),
           a.hidden_size);
  return SumIntoResidual(rank, weights.attention_post_norm, tokens,
                         activations);
}

}  // namespace lockstep
