#pragma once

#include "proto/embedding.pb.h"
#include "proto/sampling.pb.h"
#include "worker/model_spec/embedding_config.h"
#include "worker/model_spec/sampling_defaults.h"

namespace lockstep {

// What a leader tells of its model, as messages.

v1::EmbeddingInfo EmbeddingInfoOf(const EmbeddingConfig& config,
                                  int hidden_size);

v1::SamplingParams SamplingParamsOf(const SamplingDefaults& defaults);

}  // namespace lockstep
