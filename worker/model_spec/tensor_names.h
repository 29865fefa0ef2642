#pragma once

#include <absl/strings/string_view.h>

#include <string>

namespace lockstep {

// Hugging Face's names of the tensors of a layer that differ from architecture
// to architecture; "" where it has none.
struct TensorNames {
  // Before and after attention, before and after the MLP.
  const char* attention_norm = "input_layernorm";
  const char* attention_post_norm = "";
  const char* mlp_norm = "post_attention_layernorm";
  const char* mlp_post_norm = "";

  // Of a mixture of experts; those of expert 3 are "mlp.experts.3.gate_proj",
  // ….
  const char* router = "mlp.gate";
  const char* experts = "mlp.experts";
  const char* expert_gate = "gate_proj";
  const char* expert_up = "up_proj";
  const char* expert_down = "down_proj";
  // What is added to the router's scores, with its end.
  const char* router_bias = "mlp.gate.e_score_correction_bias";
  // Of the expert that all tokens go through, and of its gate.
  const char* shared_expert = "mlp.shared_expert";
  const char* shared_expert_gate = "mlp.shared_expert_gate";
};

// "model.layers.3.mlp.down_proj.weight" of 3 and "mlp.down_proj".
std::string LayerTensorName(int layer, absl::string_view name);
// "model.layers.3.self_attn.q_proj.bias" of 3 and "self_attn.q_proj".
std::string LayerBiasName(int layer, absl::string_view name);
// What is added to a router's scores.
std::string RouterBiasName(int layer, const TensorNames& names);

// "model.layers.3.mlp.experts.5.down_proj.weight" of 3, "mlp.experts", 5 and
// "down_proj".
std::string ExpertTensorName(int layer, absl::string_view experts, int expert,
                             absl::string_view name);

}  // namespace lockstep
