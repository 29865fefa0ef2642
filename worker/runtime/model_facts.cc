#include "worker/runtime/model_facts.h"

namespace lockstep {

v1::EmbeddingInfo EmbeddingInfoOf(const EmbeddingConfig& config,
                                  int hidden_size) {
  const bool is_mean = config.pooling == EmbeddingConfig::Pooling::kMean;
  v1::EmbeddingInfo info;
  info.set_pooling(is_mean ? v1::MEAN : v1::LAST_TOKEN);
  info.set_normalize(config.normalize);
  info.set_dimensions(hidden_size);
  info.set_any_dimensions(config.any_dimensions);
  info.mutable_fewer_dimensions()->Assign(config.fewer_dimensions.begin(),
                                          config.fewer_dimensions.end());
  return info;
}

v1::SamplingParams SamplingParamsOf(const SamplingDefaults& defaults) {
  v1::SamplingParams params;
  if (defaults.temperature) params.set_temperature(*defaults.temperature);
  if (defaults.top_p) params.set_top_p(*defaults.top_p);
  if (defaults.min_p) params.set_min_p(*defaults.min_p);
  if (defaults.repetition_penalty) {
    params.set_repetition_penalty(*defaults.repetition_penalty);
  }
  if (defaults.top_k) params.set_top_k(*defaults.top_k);
  if (defaults.max_tokens) params.set_max_tokens(*defaults.max_tokens);
  return params;
}

}  // namespace lockstep
