#include "worker/model_spec/model_config.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <cmath>

#include "worker/model_spec/config_limits.h"

namespace lockstep {
namespace {

using kernels::RopeStyle;
using Windows = Architecture::Windows;

constexpr Architecture kArchitectures[] = {
    {.name = "llama",
     .hugging_face_name = "LlamaForCausalLM",
     .gguf_rope_style = RopeStyle::kNeighbours},
    // Its GGUF files are llama's.
    {.name = "mistral",
     .hugging_face_name = "MistralForCausalLM",
     .gguf_rope_style = RopeStyle::kNeighbours,
     .windows = Windows::kAlways},
    {.name = "phi3",
     .hugging_face_name = "Phi3ForCausalLM",
     .gguf_rope_style = RopeStyle::kHalves,
     .windows = Windows::kAlways,
     .fused_projections = true,
     .partial_rope = true},
    {.name = "qwen2",
     .hugging_face_name = "Qwen2ForCausalLM",
     .gguf_rope_style = RopeStyle::kHalves,
     .windows = Windows::kIfUsed,
     .qkv_bias = true},
    {.name = "qwen3",
     .hugging_face_name = "Qwen3ForCausalLM",
     .gguf_rope_style = RopeStyle::kHalves,
     .windows = Windows::kIfUsed,
     .qk_norm = true},
    {.name = "smollm3",
     .hugging_face_name = "SmolLM3ForCausalLM",
     .gguf_rope_style = RopeStyle::kNeighbours,
     .windows = Windows::kIfUsed,
     .has_no_rope_layers = true},
};

}  // namespace

const Architecture* FindArchitecture(const std::string& name) {
  for (const Architecture& architecture : kArchitectures) {
    if (name == architecture.name || name == architecture.hugging_face_name) {
      return &architecture;
    }
  }
  return nullptr;
}

ModelConfig ConfigOf(const Architecture& architecture) {
  ModelConfig config;
  config.architecture = architecture.name;
  config.qk_norm = architecture.qk_norm;
  config.qkv_bias = architecture.qkv_bias;
  config.fused_projections = architecture.fused_projections;
  return config;
}

absl::Status UnsupportedArchitecture(const std::string& path,
                                     const std::string& found) {
  std::string supported;
  for (const Architecture& architecture : kArchitectures) {
    absl::StrAppend(&supported, supported.empty() ? "" : ", ",
                    architecture.name, " (", architecture.hugging_face_name,
                    ")");
  }
  return absl::UnimplementedError(absl::StrCat(
      path, " holds a model of the architecture \"",
      absl::CHexEscape(found.substr(0, 100)),
      "\", which is not supported; supported are ", supported, "."));
}

float YarnAttentionFactor(float factor) {
  return factor <= 1 ? 1 : 0.1f * std::log(factor) + 1;
}

absl::Status CheckConfig(const ModelConfig& config, const std::string& path) {
  const auto error = [&path](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", what...));
  };
  if (config.num_heads % config.num_kv_heads != 0) {
    return error(config.num_heads, " query heads are not a multiple of ",
                 config.num_kv_heads, " key-value heads.");
  }
  // It may have come from the other sizes.
  if (config.head_dim > kMaxHeadDim) {
    return error("the head size is ", config.head_dim, ", expected at most ",
                 kMaxHeadDim, ".");
  }
  if (config.head_dim % 2 != 0) {
    return error("the head size is ", config.head_dim,
                 ", expected an even number.");
  }
  const int rotary_dim = config.rope.rotary_dim;
  if (rotary_dim < 2 || rotary_dim > config.head_dim || rotary_dim % 2 != 0) {
    return error(rotary_dim, " dimensions of a head rotate, expected an even ",
                 "number from 2 to ", config.head_dim, ".");
  }
  return absl::OkStatus();
}

}  // namespace lockstep
