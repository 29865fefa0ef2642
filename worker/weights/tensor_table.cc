#include "worker/weights/tensor_table.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <set>

#include "worker/checkpoint/tensor_part.h"
#include "worker/model_spec/tensor_names.h"

namespace lockstep {
namespace {

// Of the layers after those that are computed, by either format's names: GGUF's
// of what only these have is not one of Hugging Face's.
bool IsOfGuessingLayer(absl::string_view name, const ModelConfig& config) {
  if (config.num_guessing_layers == 0) return false;
  if (!absl::ConsumePrefix(&name, "model.layers.") &&
      !absl::ConsumePrefix(&name, "blk.")) {
    return false;
  }
  int layer = 0;
  return absl::SimpleAtoi(name.substr(0, name.find('.')), &layer) &&
         layer >= config.num_layers &&
         layer < config.num_layers + config.num_guessing_layers;
}

// Tensors that files have and nobody needs.
bool IsOfNoUse(absl::string_view name, const ModelConfig& config) {
  // Computed from the config; GGUF's has been read with it.
  for (const absl::string_view rope :
       {".rotary_emb.inv_freq", "rope_freqs.weight", "rope_factors_long.weight",
        "rope_factors_short.weight"}) {
    if (absl::EndsWith(name, rope)) return true;
  }
  if (IsOfGuessingLayer(name, config)) return true;
  // Saved although it is the embedding.
  return config.tied_embeddings && name == kHeadName;
}

// Adds the tensors of a layer to a list.
class LayerTensors {
 public:
  LayerTensors(const ModelConfig& config, int layer,
               std::vector<TensorSpec>* specs)
      : config_(config),
        layer_(layer),
        specs_(*specs),
        hidden_(config.hidden_size),
        q_(int64_t{config.num_heads} * config.head_dim),
        kv_(int64_t{config.num_kv_heads} * config.head_dim) {}

  void Add() {
    AddNorms();
    AddAttention();
    if (config_.layers[layer_].has_experts) {
      AddExperts();
    } else if (config_.fused_gate_up) {
      Add("mlp.gate_up_proj", {2 * config_.intermediate_size, hidden_});
      Add("mlp.down_proj", {hidden_, config_.intermediate_size}).cut =
          &RowParallelBlocks::down;
    } else {
      AddMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
             config_.intermediate_size, &RowParallelBlocks::down);
    }
  }

 private:
  TensorSpec& Add(absl::string_view name, const std::vector<int64_t>& shape) {
    specs_.push_back({LayerTensorName(layer_, name), shape});
    return specs_.back();
  }

  void AddNorms() {
    const TensorNames& names = config_.names;
    for (const char* norm : {names.attention_norm, names.attention_post_norm,
                             names.mlp_norm, names.mlp_post_norm}) {
      if (*norm != 0) Add(norm, {hidden_});
    }
    if (config_.qk_norm || config_.projection_norm) {
      Add("self_attn.q_norm", {config_.qk_norm ? config_.head_dim : q_});
      Add("self_attn.k_norm", {config_.qk_norm ? config_.head_dim : kv_});
    }
  }

  void AddAttention() {
    if (config_.fused_qkv) {
      Add("self_attn.qkv_proj", {q_ + 2 * kv_, hidden_});
    } else {
      Add("self_attn.q_proj", {q_, hidden_});
      Add("self_attn.k_proj", {kv_, hidden_});
      Add("self_attn.v_proj", {kv_, hidden_});
    }
    if (config_.qkv_bias && config_.fused_qkv) {
      specs_.push_back(
          {LayerBiasName(layer_, "self_attn.qkv_proj"), {q_ + 2 * kv_}});
    } else if (config_.qkv_bias) {
      specs_.push_back({LayerBiasName(layer_, "self_attn.q_proj"), {q_}});
      specs_.push_back({LayerBiasName(layer_, "self_attn.k_proj"), {kv_}});
      specs_.push_back({LayerBiasName(layer_, "self_attn.v_proj"), {kv_}});
    }
    Add("self_attn.o_proj", {hidden_, q_}).cut = &RowParallelBlocks::o;
  }

  void AddMlp(absl::string_view gate, absl::string_view up,
              absl::string_view down, int64_t intermediate,
              int RowParallelBlocks::*cut) {
    Add(gate, {intermediate, hidden_});
    Add(up, {intermediate, hidden_});
    Add(down, {hidden_, intermediate}).cut = cut;
  }

  void AddExperts() {
    const ExpertsConfig& experts = config_.experts;
    const TensorNames& names = config_.names;
    Add(names.router, {experts.num_experts, hidden_}).routes = true;
    if (experts.choice_bias) {
      specs_.push_back({RouterBiasName(layer_, names), {experts.num_experts}});
    }
    for (int i = 0; i < experts.num_experts; ++i) {
      const std::string expert = absl::StrCat(names.experts, ".", i, ".");
      AddMlp(expert + names.expert_gate, expert + names.expert_up,
             expert + names.expert_down, experts.intermediate_size,
             &RowParallelBlocks::expert_down);
    }
    if (experts.shared_intermediate_size == 0) return;
    const std::string shared = absl::StrCat(names.shared_expert, ".");
    AddMlp(shared + "gate_proj", shared + "up_proj", shared + "down_proj",
           experts.shared_intermediate_size,
           &RowParallelBlocks::shared_expert_down);
    if (experts.shared_gate) {
      Add(names.shared_expert_gate, {1, hidden_}).routes = true;
    }
  }

  const ModelConfig& config_;
  const int layer_;
  std::vector<TensorSpec>& specs_;
  const int64_t hidden_, q_, kv_;
};

}  // namespace

std::vector<TensorSpec> ExpectedTensors(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  std::vector<TensorSpec> specs = {
      {kEmbeddingName, {config.vocab_size, hidden}},
      {kFinalNormName, {hidden}},
  };
  if (config.has_head && !config.tied_embeddings) {
    specs.push_back({kHeadName, {config.vocab_size, hidden}});
  }
  for (int layer = 0; layer < config.num_layers; ++layer) {
    LayerTensors(config, layer, &specs).Add();
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
    if (!kernels::HoldsWeights(tensor->type)) {
      return absl::InvalidArgumentError(absl::StrCat(
          source.FileOf(spec.name), ": tensor ", spec.name, " is of type ",
          kernels::DTypeName(tensor->type),
          ", expected weights, or a quantization_config in config.json that "
          "says what scales it."));
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
