#include "worker/layers/activations.h"

namespace lockstep {

Activations::Activations(const ModelConfig& config, const Shard& shard,
                         int max_tokens)
    : hidden_size(config.hidden_size),
      q_size(shard.num_heads() * config.head_dim),
      kv_size(shard.num_kv_heads() * config.head_dim),
      intermediate(shard.intermediate()) {
  const size_t tokens = max_tokens;
  hidden = FloatBuffer(tokens * hidden_size);
  normed = FloatBuffer(tokens * hidden_size);
  qkv = FloatBuffer(tokens * (q_size + 2 * kv_size));
  attention = FloatBuffer(tokens * q_size);
  gate_up = FloatBuffer(tokens * 2 * intermediate);
  activated = FloatBuffer(tokens * intermediate);
  delta = FloatBuffer(tokens * hidden_size);
}

int64_t Activations::Bytes(const ModelConfig& config, const Shard& shard,
                           int max_tokens) {
  const int64_t q = int64_t{shard.num_heads()} * config.head_dim;
  const int64_t kv = int64_t{shard.num_kv_heads()} * config.head_dim;
  const int64_t floats = 3 * int64_t{config.hidden_size} + 2 * (q + kv) +
                         3 * int64_t{shard.intermediate()};
  return max_tokens * floats * static_cast<int64_t>(sizeof(float));
}

}  // namespace lockstep
