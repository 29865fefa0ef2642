#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/ops.h"

namespace lockstep {

class GgufFile;

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
// set of these values and of weight names, not a class.
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

// From a Hugging Face config.json, old style (rope_theta, rope_scaling) or new
// (rope_parameters). `path` is for messages. UNIMPLEMENTED names an
// architecture or an option that is not supported and the ones that are;
// INVALID_ARGUMENT names a key that is missing or makes no sense.
absl::StatusOr<ModelConfig> ConfigFromHuggingFace(const nlohmann::json& config,
                                                  const std::string& path);

// From GGUF metadata.
absl::StatusOr<ModelConfig> ConfigFromGguf(const GgufFile& file);

}  // namespace lockstep
