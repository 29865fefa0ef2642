#include "worker/weights/tensor_table.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <set>

namespace lockstep {
namespace {

// Tensors that files have and nobody needs.
bool IsOfNoUse(absl::string_view name, const ModelConfig& config) {
  // Computed from the config; GGUF's has been read with it.
  if (absl::EndsWith(name, ".rotary_emb.inv_freq")) return true;
  if (name == "rope_freqs.weight") return true;
  // Saved although it is the embedding.
  return config.tied_embeddings && name == kHeadName;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace

std::string LayerTensorName(int layer, absl::string_view name) {
  return absl::StrCat("model.layers.", layer, ".", name, ".weight");
}

std::string LayerBiasName(int layer, absl::string_view name) {
  return absl::StrCat("model.layers.", layer, ".", name, ".bias");
}

std::vector<TensorSpec> ExpectedTensors(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t mlp = config.intermediate_size;
  const int64_t q = int64_t{config.num_heads} * config.head_dim;
  const int64_t kv = int64_t{config.num_kv_heads} * config.head_dim;
  std::vector<TensorSpec> specs = {
      {kEmbeddingName, {config.vocab_size, hidden}},
      {kFinalNormName, {hidden}},
  };
  if (!config.tied_embeddings) {
    specs.push_back({kHeadName, {config.vocab_size, hidden}});
  }
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const auto add = [&specs, layer](absl::string_view name,
                                     const std::vector<int64_t>& shape) {
      specs.push_back({LayerTensorName(layer, name), shape});
    };
    add("input_layernorm", {hidden});
    if (config.fused_projections) {
      add("self_attn.qkv_proj", {q + 2 * kv, hidden});
      add("mlp.gate_up_proj", {2 * mlp, hidden});
    } else {
      add("self_attn.q_proj", {q, hidden});
      add("self_attn.k_proj", {kv, hidden});
      add("self_attn.v_proj", {kv, hidden});
      add("mlp.gate_proj", {mlp, hidden});
      add("mlp.up_proj", {mlp, hidden});
    }
    if (config.qkv_bias) {
      specs.push_back({LayerBiasName(layer, "self_attn.q_proj"), {q}});
      specs.push_back({LayerBiasName(layer, "self_attn.k_proj"), {kv}});
      specs.push_back({LayerBiasName(layer, "self_attn.v_proj"), {kv}});
    }
    add("self_attn.o_proj", {hidden, q});
    if (config.qk_norm) {
      add("self_attn.q_norm", {config.head_dim});
      add("self_attn.k_norm", {config.head_dim});
    }
    add("post_attention_layernorm", {hidden});
    add("mlp.down_proj", {hidden, mlp});
  }
  return specs;
}

absl::Status CheckTensors(const TensorSource& source,
                          const ModelConfig& config) {
  std::set<std::string> expected;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    const auto tensor = source.Get(spec.name);
    if (!tensor.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          source.FileOf(spec.name), ": tensor ", spec.name,
          " is missing, expected one of shape ", ShapeText(spec.shape), "."));
    }
    if (tensor->shape != spec.shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          source.FileOf(spec.name), ": tensor ", spec.name, " has the shape ",
          ShapeText(tensor->shape), ", expected ", ShapeText(spec.shape), "."));
    }
    expected.insert(spec.name);
  }
  for (const std::string& name : source.Names()) {
    if (expected.count(name) == 0 && !IsOfNoUse(name, config)) {
      return absl::InvalidArgumentError(absl::StrCat(
          source.FileOf(name), ": tensor \"", absl::CHexEscape(name),
          "\" is not part of a ", config.architecture, " model of ",
          config.num_layers, " layers."));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep
