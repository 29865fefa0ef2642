#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/rotary.h"
#include "kernels/simd/gate.h"
#include "worker/model_spec/tensor_names.h"

namespace lockstep {

// Rotary position embedding: the inverse frequency of pair i is
// theta^(-2i / rotary_dim), changed as `scaling` says.
struct RopeConfig {
  enum class Scaling { kNone, kLinear, kLlama3, kYarn, kDynamic, kLongRope };

  kernels::RopeStyle style = kernels::RopeStyle::kHalves;
  float theta = 10000;
  int rotary_dim = 0;
  Scaling scaling = Scaling::kNone;
  float factor = 1;  // of all scalings but kLongRope
  // Of kLlama3 (Llama 3.1 model card; Hugging Face `rope_type: llama3`).
  float low_freq_factor = 1;
  float high_freq_factor = 1;
  // Of kYarn (Peng et al. 2023, arXiv:2309.00071): pairs that turn more often
  // than beta_fast within the original context stay, those that turn less than
  // beta_slow are slowed down by `factor`; cosines and sines are multiplied.
  float beta_fast = 32;
  float beta_slow = 1;
  float attention_factor = 1;     // of kLongRope, too
  int original_max_position = 0;  // of all from kLlama3 on
  // Of kDynamic and kLongRope, whose frequencies follow the length of a
  // sequence; see rope_length.h.
  int longest_sequence = 0;  // of kDynamic, whose theta grows with it
  // Of kLongRope (Ding et al. 2024, arXiv:2402.13753): what the frequency of
  // each pair is divided by, and would be for sequences longer than
  // original_max_position; [rotary_dim / 2].
  std::vector<float> factors;
  std::vector<float> long_factors;
};

// What differs from layer to layer.
struct LayerConfig {
  // Positions a token sees, its own the last of them; 0: all up to its own.
  int window = 0;
  bool has_rope = true;
  bool local_rope = false;   // rotates by ModelConfig::local_rope
  bool has_experts = false;  // in place of one MLP
};

// A mixture of experts: of num_experts MLPs a token goes through the few that a
// router likes best, weighted by its softmax or, in DeepSeek-V3's way, by the
// sigmoid of its logits (kernels/expert_choice.h).
struct ExpertsConfig {
  int num_experts = 0;  // 0: the model has none
  int experts_per_token = 0;
  int intermediate_size = 0;  // of an expert
  bool renormalize = false;   // a token's weights are made to sum to 1
  float weight_scale = 1;     // and multiplied by this
  bool sigmoid = false;
  // Of sigmoids: each expert has a bias that counts in the choice alone, and
  // those chosen are of groups_per_token out of num_groups.
  bool choice_bias = false;
  int num_groups = 1;
  int groups_per_token = 1;
  // Of one more expert that all tokens go through; 0: there is none.
  int shared_intermediate_size = 0;
  bool shared_gate = false;  // times a sigmoid of the token's own
};

// What the decoder needs to know of a model; a new dense architecture is a new
// set of these values and of weight names (architecture.h), not a class. It is
// read by ConfigFromHuggingFace (huggingface_config.h) or ConfigFromGguf
// (gguf_config.h).
struct ModelConfig {
  std::string architecture;  // "llama", "qwen3"
  TensorNames names;
  // It is the language part of a model with vision: its tensors are among
  // others and have longer names.
  bool multimodal = false;
  int vocab_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_layers = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int max_context = 0;  // tokens
  float norm_eps = 0;
  bool norm_offset = false;  // norms multiply by 1 + the stored weight
  RopeConfig rope;
  RopeConfig local_rope;
  std::vector<LayerConfig> layers;  // [num_layers]
  // Layers that files have after these, to guess more than the next token.
  // They are not computed.
  int num_guessing_layers = 0;
  ExpertsConfig experts;
  kernels::Gate gate = kernels::Gate::kSilu;
  bool qk_norm = false;          // RMS norm of each q and k head before rope
  bool projection_norm = false;  // or of all of q and all of k
  bool qkv_bias = false;         // added to q, k and v
  bool fused_qkv = false;        // q, k and v are one tensor
  bool fused_gate_up = false;    // and so are gate and up
  bool tied_embeddings = false;  // the head is the embedding
  bool has_head = true;          // false: it makes embeddings alone
  float embedding_scale = 1;
  float query_scale = 0;     // of scores; 1/√head_dim in most models
  float score_cap = 0;       // cap·tanh(score / cap); 0: none
  float residual_scale = 1;  // of what a block adds to the residual stream
  float logit_divisor = 1;
  float logit_cap = 0;  // as score_cap, of the logits
  std::vector<uint32_t> eos_token_ids;
  std::optional<uint32_t> bos_token_id;
};

// ln of the context's growth, tamed (equation 22 of arXiv:2309.00071).
float YarnAttentionFactor(float factor);

// The same of kLongRope. REQUIRES: original_max_position > 1.
float LongRopeAttentionFactor(float factor, int original_max_position);

// Whether the numbers, each sane by itself, fit together. INVALID_ARGUMENT
// names `path`, the values and the rule.
absl::Status CheckConfig(const ModelConfig& config, const std::string& path);

}  // namespace lockstep
