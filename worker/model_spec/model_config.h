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
  enum class Scaling { kNone, kLlama3 };

  kernels::RopeStyle style = kernels::RopeStyle::kHalves;
  float theta = 10000;
  int rotary_dim = 0;
  Scaling scaling = Scaling::kNone;
  // Of kLlama3 (Llama 3.1 model card; Hugging Face `rope_type: llama3`).
  float factor = 1;
  float low_freq_factor = 1;
  float high_freq_factor = 1;
  int original_max_position = 0;
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
  bool qk_norm = false;          // RMS norm of each q and k head before rope
  bool tied_embeddings = false;  // the head is the embedding
  std::vector<uint32_t> eos_token_ids;
  std::optional<uint32_t> bos_token_id;
};

// An architecture that is supported, by the names the two formats give it.
struct Architecture {
  const char* name;               // as in ModelConfig and GGUF
  const char* hugging_face_name;  // in config.json's `architectures`
  bool qk_norm;
  kernels::RopeStyle gguf_rope_style;
};

// Null where `name`, either format's, is none of them.
const Architecture* FindArchitecture(const std::string& name);

// UNIMPLEMENTED naming what was found in `path` and what is supported.
absl::Status UnsupportedArchitecture(const std::string& path,
                                     const std::string& found);

// Whether the numbers, each sane by itself, fit together. INVALID_ARGUMENT
// names `path`, the values and the rule.
absl::Status CheckConfig(const ModelConfig& config, const std::string& path);

}  // namespace lockstep
