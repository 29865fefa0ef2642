#pragma once

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
};

}  // namespace lockstep
