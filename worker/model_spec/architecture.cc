#include "worker/model_spec/architecture.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <iterator>

namespace lockstep {
namespace {

using kernels::Gate;
using kernels::RopeStyle;
using Windows = Architecture::Windows;

using SharedExpert = Architecture::SharedExpert;

// Gemma's: before and after each half of a layer.
constexpr TensorNames kFourNorms = {
    .attention_norm = "input_layernorm",
    .attention_post_norm = "post_attention_layernorm",
    .mlp_norm = "pre_feedforward_layernorm",
    .mlp_post_norm = "post_feedforward_layernorm"};

constexpr TensorNames kSharedExperts = {.shared_expert = "mlp.shared_experts"};

constexpr Architecture kArchitectures[] = {
    // Its window is of no layer unless max_window_layers is less than theirs.
    {.name = "dots1",
     .gguf_name = "dots1",
     .hugging_face_name = "Dots1ForCausalLM",
     .windows = Windows::kAlways,
     .qk_norm = true,
     .names = kSharedExperts,
     .has_experts = true,
     .shared_expert = SharedExpert::kCounted,
     .sigmoid_router = true,
     .options = {"norm_topk_prob"},
     .defaults = R"({"max_window_layers": 62})"},
    {.name = "gemma2",
     .gguf_name = "gemma2",
     .hugging_face_name = "Gemma2ForCausalLM",
     .windows = Windows::kAlways,
     .full_attention_interval = 2,
     .gate = Gate::kGeluTanh,
     .names = kFourNorms,
     .scaled_embedding = true,
     .hugging_face_norm_offset = true,
     .gguf_score_cap = 50,
     .gguf_logit_cap = 30,
     .options = {"attn_logit_softcapping", "final_logit_softcapping",
                 "query_pre_attn_scalar"},
     .defaults = R"({"attn_logit_softcapping": 50.0,
                     "final_logit_softcapping": 30.0,
                     "hidden_activation": "gelu_pytorch_tanh",
                     "query_pre_attn_scalar": 256,
                     "sliding_window": 4096,
                     "tie_word_embeddings": true})"},
    {.name = "gemma3",
     .gguf_name = "gemma3",
     .hugging_face_name = "Gemma3ForCausalLM",
     .base_name = "Gemma3TextModel",
     .multimodal_name = "Gemma3ForConditionalGeneration",
     .text_model_type = "gemma3_text",
     .windows = Windows::kAlways,
     .full_attention_interval = 6,
     .local_rope = true,
     .gate = Gate::kGeluTanh,
     .qk_norm = true,
     .names = kFourNorms,
     .scaled_embedding = true,
     .hugging_face_norm_offset = true,
     .options = {"attn_logit_softcapping", "final_logit_softcapping",
                 "query_pre_attn_scalar"},
     .defaults = R"({"head_dim": 256,
                     "hidden_activation": "gelu_pytorch_tanh",
                     "max_position_embeddings": 131072,
                     "num_attention_heads": 8,
                     "num_key_value_heads": 4,
                     "query_pre_attn_scalar": 256,
                     "rms_norm_eps": 1e-6,
                     "rope_theta": 1000000.0,
                     "sliding_window": 4096,
                     "tie_word_embeddings": true,
                     "vocab_size": 262208})"},
    // Interleaved rope of a part of each head, in both formats.
    {.name = "glm",
     .gguf_name = "chatglm",
     .hugging_face_name = "GlmForCausalLM",
     .gguf_rope_style = RopeStyle::kNeighbours,
     .hugging_face_rope_style = RopeStyle::kNeighbours,
     .qkv_bias_key = "attention_bias",
     .fused_gate_up = true,
     .options = {"attention_bias", "partial_rotary_factor"},
     .defaults = R"({"attention_bias": true, "head_dim": 128,
                     "partial_rotary_factor": 0.5})"},
    {.name = "glm4",
     .gguf_name = "glm4",
     .hugging_face_name = "Glm4ForCausalLM",
     .gguf_rope_style = RopeStyle::kNeighbours,
     .hugging_face_rope_style = RopeStyle::kNeighbours,
     .qkv_bias_key = "attention_bias",
     .fused_gate_up = true,
     .names = {.attention_norm = "input_layernorm",
               .attention_post_norm = "post_self_attn_layernorm",
               .mlp_norm = "post_attention_layernorm",
               .mlp_post_norm = "post_mlp_layernorm"},
     .options = {"attention_bias", "partial_rotary_factor"},
     .defaults = R"({"partial_rotary_factor": 0.5})"},
    {.name = "glm4moe",
     .gguf_name = "glm4moe",
     .hugging_face_name = "Glm4MoeForCausalLM",
     .qkv_bias_key = "attention_bias",
     .qk_norm_key = "use_qk_norm",
     .names = kSharedExperts,
     .gguf_mlp_norm = "post_attention_norm",
     .has_experts = true,
     .shared_expert = SharedExpert::kCounted,
     .sigmoid_router = true,
     .options = {"attention_bias", "norm_topk_prob", "partial_rotary_factor"},
     .defaults = R"({"first_k_dense_replace": 1, "norm_topk_prob": true,
                     "num_nextn_predict_layers": 1,
                     "partial_rotary_factor": 0.5})"},
    {.name = "granite",
     .gguf_name = "granite",
     .hugging_face_name = "GraniteForCausalLM",
     .gguf_rope_style = RopeStyle::kNeighbours,
     .options = {"attention_multiplier", "embedding_multiplier",
                 "logits_scaling", "residual_multiplier"},
     .defaults = R"({"attention_multiplier": 1.0})"},
    {.name = "llama",
     .gguf_name = "llama",
     .hugging_face_name = "LlamaForCausalLM",
     .gguf_rope_style = RopeStyle::kNeighbours},
    // Its GGUF files are llama's, or, of the text part of Mistral Small 3.1 and
    // later, mistral3.
    {.name = "mistral",
     .gguf_name = "mistral",
     .hugging_face_name = "MistralForCausalLM",
     .other_gguf_name = "mistral3",
     .multimodal_name = "Mistral3ForConditionalGeneration",
     .text_model_type = "mistral",
     .gguf_rope_style = RopeStyle::kNeighbours,
     .windows = Windows::kAlways},
    {.name = "mixtral",
     .gguf_name = "llama",
     .hugging_face_name = "MixtralForCausalLM",
     .gguf_rope_style = RopeStyle::kNeighbours,
     .windows = Windows::kAlways,
     .names = {.router = "block_sparse_moe.gate",
               .experts = "block_sparse_moe.experts",
               .expert_gate = "w1",
               .expert_up = "w3",
               .expert_down = "w2"},
     .has_experts = true,
     .renormalize_experts = true,
     .options = {"num_local_experts"}},
    {.name = "olmo2",
     .gguf_name = "olmo2",
     .hugging_face_name = "Olmo2ForCausalLM",
     .projection_norm = true,
     .names = {.attention_norm = "",
               .attention_post_norm = "post_attention_layernorm",
               .mlp_norm = "",
               .mlp_post_norm = "post_feedforward_layernorm"}},
    {.name = "phi3",
     .gguf_name = "phi3",
     .hugging_face_name = "Phi3ForCausalLM",
     .windows = Windows::kAlways,
     .fused_qkv = true,
     .fused_gate_up = true,
     .options = {"partial_rotary_factor"},
     .defaults = R"({"original_max_position_embeddings": 4096})"},
    {.name = "qwen2",
     .gguf_name = "qwen2",
     .hugging_face_name = "Qwen2ForCausalLM",
     .windows = Windows::kIfUsed,
     .qkv_bias = true},
    {.name = "qwen2moe",
     .gguf_name = "qwen2moe",
     .hugging_face_name = "Qwen2MoeForCausalLM",
     .windows = Windows::kIfUsed,
     .qkv_bias = true,
     .qkv_bias_key = "qkv_bias",
     .has_experts = true,
     .shared_expert = SharedExpert::kGated,
     .options = {"norm_topk_prob", "num_experts", "num_local_experts"}},
    {.name = "qwen3",
     .gguf_name = "qwen3",
     .hugging_face_name = "Qwen3ForCausalLM",
     .windows = Windows::kIfUsed,
     .qk_norm = true},
    {.name = "qwen3moe",
     .gguf_name = "qwen3moe",
     .hugging_face_name = "Qwen3MoeForCausalLM",
     .windows = Windows::kIfUsed,
     .qk_norm = true,
     .has_experts = true,
     .renormalize_experts = true,
     .options = {"norm_topk_prob", "num_experts", "num_local_experts"}},
    {.name = "smollm3",
     .gguf_name = "smollm3",
     .hugging_face_name = "SmolLM3ForCausalLM",
     .gguf_rope_style = RopeStyle::kNeighbours,
     .windows = Windows::kIfUsed,
     .has_no_rope_layers = true},
};

bool IsBaseNameOf(absl::string_view name, const Architecture& architecture) {
  if (architecture.base_name != nullptr) return name == architecture.base_name;
  return absl::ConsumePrefix(&name,
                             absl::StripSuffix(architecture.hugging_face_name,
                                               "ForCausalLM")) &&
         name == "Model";
}

}  // namespace

bool Architecture::Takes(absl::string_view option) const {
  return std::any_of(std::begin(options), std::end(options),
                     [option](const char* taken) {
                       return taken != nullptr && option == taken;
                     });
}

const Architecture* FindHuggingFaceArchitecture(absl::string_view name,
                                                bool* multimodal) {
  for (const Architecture& architecture : kArchitectures) {
    *multimodal = !name.empty() && name == architecture.multimodal_name;
    if (*multimodal || name == architecture.hugging_face_name ||
        IsBaseNameOf(name, architecture)) {
      return &architecture;
    }
  }
  return nullptr;
}

const Architecture* FindGgufArchitecture(absl::string_view name,
                                         bool has_experts) {
  for (const Architecture& architecture : kArchitectures) {
    const bool has_name =
        name == architecture.gguf_name ||
        (!name.empty() && name == architecture.other_gguf_name);
    if (has_name && has_experts == architecture.has_experts) {
      return &architecture;
    }
  }
  return nullptr;
}

ModelConfig ConfigOf(const Architecture& architecture) {
  ModelConfig config;
  config.architecture = architecture.name;
  config.names = architecture.names;
  config.gate = architecture.gate;
  config.qk_norm = architecture.qk_norm;
  config.projection_norm = architecture.projection_norm;
  config.qkv_bias = architecture.qkv_bias;
  config.fused_qkv = architecture.fused_qkv;
  config.fused_gate_up = architecture.fused_gate_up;
  config.experts.renormalize = architecture.renormalize_experts;
  config.experts.sigmoid = architecture.sigmoid_router;
  config.experts.choice_bias = architecture.sigmoid_router;
  config.experts.shared_gate =
      architecture.shared_expert == SharedExpert::kGated;
  return config;
}

absl::Status UnsupportedArchitecture(const std::string& path,
                                     absl::string_view found) {
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

}  // namespace lockstep
