#include "worker/weights/gguf_names.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <utility>

namespace lockstep {
namespace {

using Names = std::pair<absl::string_view, absl::string_view>;

constexpr Names kModelNames[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
};

// After "blk.N." and "model.layers.N.".
constexpr Names kLayerNames[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_qkv.weight", "self_attn.qkv_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};

}  // namespace

std::string HuggingFaceName(absl::string_view gguf_name,
                            bool fused_projections) {
  for (const auto& [gguf, hugging_face] : kModelNames) {
    if (gguf_name == gguf) return std::string(hugging_face);
  }
  absl::string_view rest = gguf_name;
  if (!absl::ConsumePrefix(&rest, "blk.")) return std::string(gguf_name);
  const size_t dot = rest.find('.');
  if (dot == absl::string_view::npos) return std::string(gguf_name);
  const absl::string_view layer = rest.substr(0, dot);
  const absl::string_view name = rest.substr(dot + 1);
  if (fused_projections && name == "ffn_up.weight") {
    return absl::StrCat("model.layers.", layer, ".mlp.gate_up_proj.weight");
  }
  for (const auto& [gguf, hugging_face] : kLayerNames) {
    if (name == gguf) {
      return absl::StrCat("model.layers.", layer, ".", hugging_face);
    }
  }
  return std::string(gguf_name);
}

}  // namespace lockstep
