#include "worker/checkpoint/gguf_names.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <optional>
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
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_qkv.weight", "self_attn.qkv_proj.weight"},
    {"attn_qkv.bias", "self_attn.qkv_proj.bias"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};

// Of what all tokens go through in a mixture of experts; "" of anything else.
std::string NameOfExperts(absl::string_view gguf, const TensorNames& names) {
  if (gguf == "ffn_gate_inp") return names.router;
  if (gguf == "ffn_gate_inp_shexp") return names.shared_expert_gate;
  for (const auto& [shared, projection] :
       {std::pair{"ffn_gate_shexp", ".gate_proj"},
        std::pair{"ffn_up_shexp", ".up_proj"},
        std::pair{"ffn_down_shexp", ".down_proj"}}) {
    if (gguf == shared) return absl::StrCat(names.shared_expert, projection);
  }
  return "";
}

// The same, where it depends on the architecture, of names without ".weight";
// "" where it has none.
std::string NameByArchitecture(absl::string_view gguf,
                               const Architecture& architecture) {
  const TensorNames& names = architecture.names;
  if (gguf == "attn_norm") return names.attention_norm;
  if (gguf == architecture.gguf_mlp_norm) return names.mlp_norm;
  if (gguf == "post_attention_norm") return names.attention_post_norm;
  if (gguf == "post_ffw_norm") return names.mlp_post_norm;
  if (gguf == "ffn_up" && architecture.fused_gate_up) return "mlp.gate_up_proj";
  return architecture.has_experts ? NameOfExperts(gguf, names) : "";
}

// "3" and "ffn_down.weight" of "blk.3.ffn_down.weight".
std::optional<Names> SplitLayer(absl::string_view gguf_name) {
  if (!absl::ConsumePrefix(&gguf_name, "blk.")) return std::nullopt;
  const size_t dot = gguf_name.find('.');
  if (dot == absl::string_view::npos) return std::nullopt;
  return Names(gguf_name.substr(0, dot), gguf_name.substr(dot + 1));
}

}  // namespace

std::string HuggingFaceName(absl::string_view gguf_name,
                            const Architecture& architecture) {
  for (const auto& [gguf, hugging_face] : kModelNames) {
    if (gguf_name == gguf) return std::string(hugging_face);
  }
  const std::optional<Names> split = SplitLayer(gguf_name);
  if (!split.has_value()) return std::string(gguf_name);
  const auto& [layer, name] = *split;
  absl::string_view stem = name;
  if (absl::ConsumeSuffix(&stem, ".weight")) {
    const std::string own = NameByArchitecture(stem, architecture);
    if (!own.empty()) {
      return absl::StrCat("model.layers.", layer, ".", own, ".weight");
    }
  }
  if (name == "exp_probs_b.bias" && architecture.has_experts) {
    return absl::StrCat("model.layers.", layer, ".",
                        architecture.names.router_bias);
  }
  for (const auto& [gguf, hugging_face] : kLayerNames) {
    if (name == gguf) {
      return absl::StrCat("model.layers.", layer, ".", hugging_face);
    }
  }
  return std::string(gguf_name);
}

std::vector<ExpertNames> HuggingFaceExpertNames(
    absl::string_view gguf_name, const Architecture& architecture) {
  const std::optional<Names> split = SplitLayer(gguf_name);
  if (!split.has_value() || !architecture.has_experts) return {};
  const TensorNames& names = architecture.names;
  const auto of = [&](const char* projection) {
    return ExpertNames{
        absl::StrCat("model.layers.", split->first, ".", names.experts, "."),
        absl::StrCat(".", projection, ".weight")};
  };
  const absl::string_view name = split->second;
  if (name == "ffn_gate_exps.weight") return {of(names.expert_gate)};
  if (name == "ffn_up_exps.weight") return {of(names.expert_up)};
  if (name == "ffn_down_exps.weight") return {of(names.expert_down)};
  if (name == "ffn_gate_up_exps.weight") {
    return {of(names.expert_gate), of(names.expert_up)};
  }
  return {};
}

}  // namespace lockstep
