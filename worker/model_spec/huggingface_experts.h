#pragma once

#include <absl/status/status.h>

#include "worker/model_spec/architecture.h"
#include "worker/model_spec/json_fields.h"
#include "worker/model_spec/model_config.h"

namespace lockstep {

// What config.json says of a mixture of experts, and of the layers that files
// have beyond the model's. Which layers have experts huggingface_layers.h
// reads. REQUIRES: the architecture has experts; sizes have been read.
absl::Status ReadHuggingFaceExperts(const JsonFields& fields,
                                    const Architecture& architecture,
                                    ModelConfig* config);

}  // namespace lockstep
