#pragma once

#include <absl/strings/string_view.h>

#include <string>

namespace lockstep {

// Hugging Face's name of a tensor in a GGUF file of the llama and qwen3
// architectures (ggml's docs/gguf.md, "Standardized tensor names"):
// "blk.3.ffn_down.weight" is "model.layers.3.mlp.down_proj.weight". A name that
// is not known stays as it is.
std::string HuggingFaceName(absl::string_view gguf_name);

}  // namespace lockstep
