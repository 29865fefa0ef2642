#pragma once

#include <absl/status/status.h>

#include "worker/model_spec/architecture.h"
#include "worker/model_spec/json_fields.h"
#include "worker/model_spec/model_config.h"

namespace lockstep {

// Sets config->rope, and local_rope where the architecture has one, from a
// config.json: old style (rope_theta beside rope_scaling, rope_local_base_freq)
// or new (all in rope_parameters, perhaps a set for each kind of layer). Fails
// as ConfigFromHuggingFace does. REQUIRES: the sizes are set.
absl::Status ReadHuggingFaceRope(const JsonFields& fields,
                                 const Architecture& architecture,
                                 ModelConfig* config);

}  // namespace lockstep
