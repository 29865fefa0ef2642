#pragma once

#include <absl/strings/string_view.h>

#include <string>

namespace lockstep {

// Hugging Face's name of a tensor in a GGUF file (ggml's docs/gguf.md,
// "Standardized tensor names"): "blk.3.ffn_down.weight" is
// "model.layers.3.mlp.down_proj.weight". A name that is not known stays as it
// is. fused_projections: of the architecture; ffn_up is gate and up then.
std::string HuggingFaceName(absl::string_view gguf_name,
                            bool fused_projections = false);

}  // namespace lockstep
