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
  // What is added to the router's scores, with its end.
  const char* router_bias = "mlp.gate.e_score_correction_bias";
  // Of the expert that all tokens go through, and of its gate.
  const char* shared_expert = "mlp.shared_expert";
  const char* shared_expert_gate = "mlp.shared_expert_gate";
};

}  // namespace lockstep
