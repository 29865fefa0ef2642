#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

#include "kernels/rotary.h"
#include "kernels/simd/gate.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/tensor_names.h"

namespace lockstep {

// An architecture that is supported: what config.json and GGUF metadata do not
// say of a model, as its name says it.
struct Architecture {
  const char* name;               // as in ModelConfig
  const char* gguf_name;          // in GGUF's general.architecture
  const char* hugging_face_name;  // in config.json's `architectures`
  // Another name of the same in GGUF.
  const char* other_gguf_name = "";
  // The same without a head; nullptr: "Model" in place of "ForCausalLM".
  const char* base_name = nullptr;
  // Of a model with vision whose language part it is, and the model_type of
  // that part.
  const char* multimodal_name = "";
  const char* text_model_type = "";

  kernels::RopeStyle gguf_rope_style = kernels::RopeStyle::kHalves;
  kernels::RopeStyle hugging_face_rope_style = kernels::RopeStyle::kHalves;
  // Whether a file's window counts. kIfUsed: its use_sliding_window decides.
  enum class Windows { kNever, kIfUsed, kAlways } windows = Windows::kNever;
  // Every n-th layer sees all positions, unless config.json lists them; 0: none
  // does.
  int full_attention_interval = 0;
  bool local_rope = false;  // layers with a window rotate by a theta of theirs
  bool has_no_rope_layers = false;  // every fourth, unless config.json says

  // As in ModelConfig.
  kernels::Gate gate = kernels::Gate::kSilu;
  bool qk_norm = false;
  bool projection_norm = false;
  bool qkv_bias = false;
  // Of config.json, if it decides; in GGUF the tensors tell.
  const char* qkv_bias_key = nullptr;
  const char* qk_norm_key = nullptr;
  bool fused_qkv = false;
  bool fused_gate_up = false;
  TensorNames names = {};

  bool scaled_embedding = false;          // by √hidden_size
  bool hugging_face_norm_offset = false;  // GGUF has the 1 added
  const char* gguf_mlp_norm = "ffn_norm";
  // What GGUF leaves out.
  float gguf_score_cap = 0;
  float gguf_logit_cap = 0;

  bool has_experts = false;
  bool renormalize_experts = false;  // in GGUF; config.json may say it
  enum class SharedExpert {
    kNone,
    kGated,   // with a size and a gate of its own
    kCounted  // as large as a number of experts, which may be 0
  } shared_expert = SharedExpert::kNone;
  // DeepSeek-V3's router: sigmoids, a bias of the choice, groups; and the first
  // few layers have none.
  bool sigmoid_router = false;

  // Keys of config.json that change what is computed, out of those that are
  // refused elsewhere.
  const char* options[4] = {};
  // What config.json may leave out, as JSON.
  const char* defaults = "{}";

  bool Takes(absl::string_view option) const;
};

// Of a model whose every `interval`-th layer does not rotate.
inline bool HasRope(int layer, int interval) {
  return (layer + 1) % interval != 0;
}
inline constexpr int kNoRopeInterval = 4;  // SmolLM3's

// Null where the name in config.json is of none of them. `*multimodal`: whether
// it is the name of a model with vision.
const Architecture* FindHuggingFaceArchitecture(absl::string_view name,
                                                bool* multimodal);

// Null where the name in GGUF is of none of them, with experts or without.
const Architecture* FindGgufArchitecture(absl::string_view name,
                                         bool has_experts);

// UNIMPLEMENTED naming what was found in `path` and what is supported.
absl::Status UnsupportedArchitecture(const std::string& path,
                                     absl::string_view found);

// What follows from the architecture alone.
ModelConfig ConfigOf(const Architecture& architecture);

}  // namespace lockstep
