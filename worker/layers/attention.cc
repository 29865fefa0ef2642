#include "worker/layers/attention.h"

#include <cmath>

#include "common/status_macros.h"

namespace lockstep {
namespace {

const float* DataOrNull(const std::vector<float>& weights) {
  return weights.empty() ? nullptr : weights.data();
}

}  // namespace

absl::Status AttentionBlock(const RankContext& rank,
                            const LayerAttention& layer,
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
  const auto norm_rope = [&](float* x, int heads,
                             const std::vector<float>& norm) {
    ops.NormRope(x, qkv_stride, heads, config.head_dim, DataOrNull(norm),
                 config.norm_eps, config.rope.style,
                 layer.has_rope ? config.rope.rotary_dim : 0, rope.cos(),
                 rope.sin(), batch);
  };

  ops.RmsNorm(a.hidden.data(), a.hidden_size, tokens, a.hidden_size,
              weights.attention_norm.data(), config.norm_eps, a.normed.data(),
              a.hidden_size);
  ops.Gemm(weights.qkv, a.normed.data(), a.hidden_size, tokens, a.qkv.data(),
           qkv_stride, DataOrNull(weights.qkv_bias));
  norm_rope(q, shard.num_heads(), weights.q_norm);
  norm_rope(k, shard.num_kv_heads(), weights.k_norm);
  ops.StoreKv(k, qkv_stride, v, qkv_stride, batch, kv);
  ops.Attention(q, qkv_stride, shard.num_heads(), shard.kv_head_of.data(),
                1.0f / std::sqrt(static_cast<float>(config.head_dim)),
                layer.window, batch, kv, a.attention.data(), a.q_size);
  ops.Gemm(weights.o, a.attention.data(), a.q_size, tokens, a.delta.data(),
           a.hidden_size);
  LOCKSTEP_RETURN_IF_ERROR(rank.collective->AllReduceSum(
      {a.delta.data(), static_cast<size_t>(tokens) * a.hidden_size}));
  ops.Add(a.hidden.data(), a.hidden_size, a.delta.data(), a.hidden_size, tokens,
          a.hidden_size);
  return absl::OkStatus();
}

}  // namespace lockstep
