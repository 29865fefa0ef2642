#pragma once

#include <absl/status/statusor.h>

#include "common/gguf_file.h"
#include "worker/model_spec/model_config.h"

namespace lockstep {

// From GGUF metadata (ggml's docs/gguf.md), and from the tensors in what they
// alone say: that there is no head of its own, and how rope is scaled. Fails as
// ConfigFromHuggingFace does. A key of the architecture that is not known is
// refused, as it may change what the model computes.
absl::StatusOr<ModelConfig> ConfigFromGguf(const GgufFile& file);

}  // namespace lockstep
