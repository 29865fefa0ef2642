#pragma once

#include <absl/status/status.h>

#include "worker/model_spec/architecture.h"
#include "worker/model_spec/gguf_reader.h"
#include "worker/model_spec/model_config.h"

namespace lockstep {

// Sets config->rope, and local_rope where the architecture has one, from the
// keys "rope.…" and from the tensors that hold factors of frequencies. Fails as
// ConfigFromGguf does. REQUIRES: the sizes are set, rotary_dim among them.
absl::Status ReadGgufRope(const GgufReader& reader,
                          const Architecture& architecture,
                          ModelConfig* config);

}  // namespace lockstep
