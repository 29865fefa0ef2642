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

}  // namespace lockstep
