#pragma once

#include <absl/status/status.h>

#include "worker/model_spec/architecture.h"
#include "worker/model_spec/json_fields.h"
#include "worker/model_spec/model_config.h"

namespace lockstep {

// Sets config->layers from a config.json: what each layer sees, whether it
// rotates, whether it has experts. Fails as ConfigFromHuggingFace does.
// REQUIRES: num_layers is set.
absl::Status ReadHuggingFaceLayers(const JsonFields& fields,
                                   const Architecture& architecture,
                                   ModelConfig* config);

}  // namespace lockstep
