#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <vector>

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
// weight" and so on. "blk.3.ffn_gate_up_exps.weight" holds two of each expert,
// below each other: gate first, then up, in equal parts (llama.cpp's
// src/llama-graph.cpp, build_moe_ffn; its converter writes it with
// --fuse-gate-up-exps). None for any other name.
std::vector<ExpertNames> HuggingFaceExpertNames(
    absl::string_view gguf_name, const Architecture& architecture);

}  // namespace lockstep
