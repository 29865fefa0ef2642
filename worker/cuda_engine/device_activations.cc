#include "worker/cuda_engine/device_activations.h"

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/cuda_types.h"

namespace lockstep {

template <typename T>
DeviceActivations<T>::DeviceActivations(const ModelConfig& config,
                                        const Shard& shard,
                                        const Limits& limits,
                                        DeviceLayout* layout)
    : q_size(shard.num_heads() * config.head_dim),
      kv_size(shard.num_kv_heads() * config.head_dim),
      experts(config, shard, limits.tokens, layout) {
  const size_t tokens = limits.tokens, rows = limits.logits_rows;
  const size_t hidden_size = config.hidden_size;
  const size_t intermediate =
      std::max({shard.mlp.size(), shard.shared_expert.size(),
                shard.expert.size() * config.experts.experts_per_token});
  const size_t vocabulary = size_t{1} * shard.size * shard.vocab_rows;
  layout->Add("the residual stream", tokens * hidden_size, &hidden);
  layout->Add("what blocks add", tokens * hidden_size, &delta);
  layout->Add("normed activations", tokens * hidden_size, &normed);
  layout->Add("q, k and v", tokens * (q_size + 2 * kv_size), &qkv);
  layout->Add("attention", tokens * q_size, &attention);
  layout->Add("gate and up", tokens * 2 * intermediate, &gate_up);
  layout->Add("gated activations", tokens * intermediate, &activated);
  layout->Add("the head's input", rows * hidden_size, &head_input);
  layout->Add("gathered logits", rows * vocabulary, &gathered);
  layout->Add("the best ids", rows, &best_ids);
  if (config.projection_norm) {
    layout->Add("squares of heads",
                tokens * (config.num_heads + config.num_kv_heads),
                &head_squares);
  }
  if (shard.size > 1) layout->Add("logits", rows * vocabulary, &logits);
}

template struct DeviceActivations<float>;
template struct DeviceActivations<cuda::BFloat16>;

}  // namespace lockstep
