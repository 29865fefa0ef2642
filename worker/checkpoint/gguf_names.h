#pragma once

#include <absl/strings/string_view.h>

#include <optional>
#include <string>

#include "worker/checkpoint/stacked_experts.h"
#include "worker/model_spec/architecture.h"

namespace lockstep {

// Hugging Face's name of a tensor in a GGUF file (ggml's docs/gguf.md,
// "Standardized tensor names"): "blk.3.ffn_down.weight" is
// "model.layers.3.mlp.down_proj.weight". A name that is not known stays as it
// is.
std::string HuggingFaceName(absl::string_view gguf_name,
                            const Architecture& architecture);

// Names of the experts of a layer, whose tensors GGUF keeps as one:
// "blk.3.ffn_down_exps.weight" holds "model.layers.3.mlp.experts.0.down_proj.
// weight" and so on. Absent for any other name.
std::optional<ExpertNames> HuggingFaceExpertNames(
    absl::string_view gguf_name, const Architecture& architecture);

}  // namespace lockstep
