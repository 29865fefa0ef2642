#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/rotary.h"

namespace lockstep {

// Rotary position embedding: the inverse frequency of pair i is
// theta^(-2i / rotary_dim), changed as `scaling` says.
struct RopeConfig {
  enum class Scaling { kNone, kLinear, kLlama3, kYarn };

  kernels::RopeStyle style = kernels::RopeStyle::kHalves;
  float theta = 10000;
  int rotary_dim = 0;
  Scaling scaling = Scaling::kNone;
  float factor = 1;  // of all scalings
  // Of kLlama3 (Llama 3.1 model card; Hugging Face `rope_type: llama3`).
  float low_freq_factor = 1;
  float high_freq_factor = 1;
  // Of kYarn (Peng et al. 2023, arXiv:2309.00071): pairs that turn more often
  // than beta_fast within the original context stay, those that turn less than
  // beta_slow are slowed down by `factor`; cosines and sines are multiplied.
  float beta_fast = 32;
  float beta_slow = 1;
  float attention_factor = 1;
  int original_max_position = 0;  // of kLlama3 and kYarn
};

// What differs from layer to layer.
struct LayerAttention {
  // Positions a token sees, its own the last of them; 0: all up to its own.
  int window = 0;
  bool has_rope = true;
};

// What the decoder needs to know of a model; a new dense architecture is a new
// set of these values and of weight names, not a class. It is read by
// ConfigFromHuggingFace (huggingface_config.h) or ConfigFromGguf
// (gguf_config.h).
struct ModelConfig {
  std::string architecture;  // "llama", "qwen3"
  int vocab_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_layers = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int max_context = 0;  // tokens
  float norm_eps = 0;
  RopeConfig rope;
  std::vector<LayerAttention> attention;  // [num_layers]
  bool qk_norm = false;   // RMS norm of each q and k head before rope
  bool qkv_bias = false;  // added to q, k and v
  // q, k and v are one tensor, and so are gate and up.
  bool fused_projections = false;
  bool tied_embeddings = false;  // the head is the embedding
  std::vector<uint32_t> eos_token_ids;
  std::optional<uint32_t> bos_token_id;
};

// An architecture that is supported, by the names the two formats give it.
struct Architecture {
  const char* name;               // as in ModelConfig and GGUF
  const char* hugging_face_name;  // in config.json's `architectures`
  kernels::RopeStyle gguf_rope_style;
  // Whether a file's window counts. kIfUsed: its use_sliding_window decides.
  enum class Windows { kNever, kIfUsed, kAlways } windows = Windows::kNever;
  bool qk_norm = false;             // as in ModelConfig
  bool qkv_bias = false;            // as in ModelConfig
  bool fused_projections = false;   // as in ModelConfig
  bool partial_rope = false;        // a part of each head may stay unrotated
  bool has_no_rope_layers = false;  // every fourth, unless config.json says
};

// Of a model whose every `interval`-th layer does not rotate.
inline bool HasRope(int layer, int interval) {
  return (layer + 1) % interval != 0;
}
inline constexpr int kNoRopeInterval = 4;  // SmolLM3's

// ln of the context's growth, tamed (equation 22 of arXiv:2309.00071).
float YarnAttentionFactor(float factor);

// Null where `name`, either format's, is none of them.
const Architecture* FindArchitecture(const std::string& name);

// UNIMPLEMENTED naming what was found in `path` and what is supported.
absl::Status UnsupportedArchitecture(const std::string& path,
                                     const std::string& found);

// What follows from the architecture alone.
ModelConfig ConfigOf(const Architecture& architecture);

// Whether the numbers, each sane by itself, fit together. INVALID_ARGUMENT
// names `path`, the values and the rule.
absl::Status CheckConfig(const ModelConfig& config, const std::string& path);

}  // namespace lockstep
