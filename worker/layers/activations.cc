#include "worker/layers/activations.h"

#include <algorithm>

namespace lockstep {
namespace {

// Floats a token, of `activated`.
int64_t ActivatedSize(const ModelConfig& config, const Shard& shard) {
  return std::max(
      {int64_t{shard.mlp.size()}, int64_t{shard.shared_expert.size()},
       int64_t{shard.expert.size()} * config.experts.experts_per_token});
}

int64_t HeadSquaresSize(const ModelConfig& config) {
  return config.projection_norm ? config.num_heads + config.num_kv_heads : 0;
}

}  // namespace

Activations::Activations(const ModelConfig& config, const Shard& shard,
                         int max_tokens)
    : hidden_size(config.hidden_size),
      q_size(shard.num_heads() * config.head_dim),
      kv_size(shard.num_kv_heads() * config.head_dim) {
  const size_t tokens = max_tokens;
  hidden = FloatBuffer(tokens * hidden_size);
  normed = FloatBuffer(tokens * hidden_size);
  qkv = FloatBuffer(tokens * (q_size + 2 * kv_size));
  attention = FloatBuffer(tokens * q_size);
  gate_up = FloatBuffer(tokens * 2 * ActivatedSize(config, shard));
  activated = FloatBuffer(tokens * ActivatedSize(config, shard));
  delta = FloatBuffer(tokens * hidden_size);
  head_squares = FloatBuffer(tokens * HeadSquaresSize(config));
}

int64_t Activations::Bytes(const ModelConfig& config, const Shard& shard,
                           int max_tokens) {
  const int64_t q = int64_t{shard.num_heads()} * config.head_dim;
  const int64_t kv = int64_t{shard.num_kv_heads()} * config.head_dim;
  const int64_t floats = 3 * int64_t{config.hidden_size} + 2 * (q + kv) +
                         3 * ActivatedSize(config, shard) +
                         HeadSquaresSize(config);
  return max_tokens * floats * static_cast<int64_t>(sizeof(float));
}

}  // namespace lockstep
