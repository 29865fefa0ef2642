#include "worker/weights/tensor_table.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cstddef>

#include "common/status_macros.h"
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

using Visitor = absl::FunctionRef<absl::Status(const TensorSpec&)>;

// Visits the tensors of a layer.
class LayerTensors {
 public:
  LayerTensors(const ModelConfig& config, int layer, Visitor visit)
      : config_(config),
        layer_(layer),
        visit_(visit),
        hidden_(config.hidden_size),
        q_(int64_t{config.num_heads} * config.head_dim),
        kv_(int64_t{config.num_kv_heads} * config.head_dim) {}

  absl::Status Visit() const {
    LOCKSTEP_RETURN_IF_ERROR(Norms());
    LOCKSTEP_RETURN_IF_ERROR(Attention());
    if (config_.layers[layer_].has_experts) return Experts();
    if (!config_.fused_gate_up) {
      return Mlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
                 config_.intermediate_size, &RowParallelBlocks::down);
    }
    LOCKSTEP_RETURN_IF_ERROR(
        Weight("mlp.gate_up_proj", {2 * config_.intermediate_size, hidden_}));
    return Weight("mlp.down_proj", {hidden_, config_.intermediate_size},
                  {.cut = &RowParallelBlocks::down});
  }

 private:
  // What a spec has besides its name and its shape.
  struct Use {
    bool routes = false;
    int RowParallelBlocks::*cut = nullptr;
  };

  absl::Status Weight(absl::string_view name,
                      const std::vector<int64_t>& shape) const {
    return Weight(name, shape, Use());
  }

  absl::Status Weight(absl::string_view name, const std::vector<int64_t>& shape,
                      const Use& use) const {
    return visit_({.name = LayerTensorName(layer_, name),
                   .shape = shape,
                   .routes = use.routes,
                   .cut = use.cut});
  }

  absl::Status Bias(absl::string_view name, int64_t size) const {
    return visit_({.name = LayerBiasName(layer_, name), .shape = {size}});
  }

  absl::Status Norms() const {
    const TensorNames& names = config_.names;
    for (const char* norm : {names.attention_norm, names.attention_post_norm,
                             names.mlp_norm, names.mlp_post_norm}) {
      if (*norm != 0) LOCKSTEP_RETURN_IF_ERROR(Weight(norm, {hidden_}));
    }
    if (!config_.qk_norm && !config_.projection_norm) return absl::OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(
        Weight("self_attn.q_norm", {config_.qk_norm ? config_.head_dim : q_}));
    return Weight("self_attn.k_norm",
                  {config_.qk_norm ? config_.head_dim : kv_});
  }

  absl::Status Attention() const {
    struct Projection {
      const char* name;
      int64_t rows;
    };
    const std::vector<Projection> projections =
        config_.fused_qkv
            ? std::vector<Projection>{{"self_attn.qkv_proj", q_ + 2 * kv_}}
            : std::vector<Projection>{{"self_attn.q_proj", q_},
                                      {"self_attn.k_proj", kv_},
                                      {"self_attn.v_proj", kv_}};
    for (const auto& [name, rows] : projections) {
      LOCKSTEP_RETURN_IF_ERROR(Weight(name, {rows, hidden_}));
    }
    for (const auto& [name, rows] : projections) {
      if (config_.qkv_bias) LOCKSTEP_RETURN_IF_ERROR(Bias(name, rows));
    }
    return Weight("self_attn.o_proj", {hidden_, q_},
                  {.cut = &RowParallelBlocks::o});
  }

  absl::Status Mlp(absl::string_view gate, absl::string_view up,
                   absl::string_view down, int64_t intermediate,
                   int RowParallelBlocks::*cut) const {
    LOCKSTEP_RETURN_IF_ERROR(Weight(gate, {intermediate, hidden_}));
    LOCKSTEP_RETURN_IF_ERROR(Weight(up, {intermediate, hidden_}));
    return Weight(down, {hidden_, intermediate}, {.cut = cut});
  }

  absl::Status Experts() const {
    const ExpertsConfig& experts = config_.experts;
    const TensorNames& names = config_.names;
    LOCKSTEP_RETURN_IF_ERROR(
        Weight(names.router, {experts.num_experts, hidden_}, {.routes = true}));
    if (experts.choice_bias) {
      LOCKSTEP_RETURN_IF_ERROR(visit_({.name = RouterBiasName(layer_, names),
                                       .shape = {experts.num_experts}}));
    }
    for (int i = 0; i < experts.num_experts; ++i) {
      const std::string expert = absl::StrCat(names.experts, ".", i, ".");
      LOCKSTEP_RETURN_IF_ERROR(
          Mlp(expert + names.expert_gate, expert + names.expert_up,
              expert + names.expert_down, experts.intermediate_size,
              &RowParallelBlocks::expert_down));
    }
    if (experts.shared_intermediate_size == 0) return absl::OkStatus();
    const std::string shared = absl::StrCat(names.shared_expert, ".");
    LOCKSTEP_RETURN_IF_ERROR(Mlp(shared + "gate_proj", shared + "up_proj",
                                 shared + "down_proj",
                                 experts.shared_intermediate_size,
                                 &RowParallelBlocks::shared_expert_down));
    if (!experts.shared_gate) return absl::OkStatus();
    return Weight(names.shared_expert_gate, {1, hidden_}, {.routes = true});
  }

  const ModelConfig& config_;
  const int layer_;
  const Visitor visit_;
  const int64_t hidden_, q_, kv_;
};

// Whether `source` has the tensor in its shape, with weights in it.
absl::Status CheckTensor(const TensorSource& source, const TensorSpec& spec) {
  const auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(
        source.FileOf(spec.name), ": tensor ", spec.name, " ", what...));
  };
  const auto tensor = source.Get(spec.name);
  if (!tensor.ok()) {
    return error("is missing, expected one of shape ", ShapeText(spec.shape),
                 ".");
  }
  if (tensor->shape != spec.shape) {
    return error("has the shape ", ShapeText(tensor->shape), ", expected ",
                 ShapeText(spec.shape), ".");
  }
  if (!kernels::HoldsWeights(tensor->type)) {
    return error("is of type ", kernels::DTypeName(tensor->type),
                 ", expected weights, or a quantization_config in config.json "
                 "that says what scales it.");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VisitTensors(const ModelConfig& config, Visitor visit) {
  const int64_t hidden = config.hidden_size;
  LOCKSTEP_RETURN_IF_ERROR(
      visit({.name = kEmbeddingName, .shape = {config.vocab_size, hidden}}));
  LOCKSTEP_RETURN_IF_ERROR(visit({.name = kFinalNormName, .shape = {hidden}}));
  if (config.has_head && !config.tied_embeddings) {
    LOCKSTEP_RETURN_IF_ERROR(
        visit({.name = kHeadName, .shape = {config.vocab_size, hidden}}));
  }
  for (int layer = 0; layer < config.num_layers; ++layer) {
    LOCKSTEP_RETURN_IF_ERROR(LayerTensors(config, layer, visit).Visit());
  }
  return absl::OkStatus();
}

std::vector<TensorSpec> ExpectedTensors(const ModelConfig& config) {
  std::vector<TensorSpec> specs;
  const auto add = [&specs](const TensorSpec& spec) {
    specs.push_back(spec);
    return absl::OkStatus();
  };
  VisitTensors(config, add).IgnoreError();  // there is none
  return specs;
}

absl::Status CheckTensors(const TensorSource& source,
                          const ModelConfig& config) {
  LOCKSTEP_RETURN_IF_ERROR(VisitTensors(config, [&](const TensorSpec& spec) {
    return CheckTensor(source, spec);
  }));
  const std::vector<std::string> names = source.Names();
  std::vector<bool> is_expected(names.size());
  const auto mark = [&](const TensorSpec& spec) {
    const auto at = std::lower_bound(names.begin(), names.end(), spec.name);
    is_expected[at - names.begin()] = true;
    return absl::OkStatus();
  };
  LOCKSTEP_RETURN_IF_ERROR(VisitTensors(config, mark));
  for (size_t i = 0; i < names.size(); ++i) {
    if (is_expected[i] || IsOfNoUse(names[i], config)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        source.FileOf(names[i]), ": tensor \"", absl::CHexEscape(names[i]),
        "\" is not part of a ", config.architecture, " model of ",
        config.num_layers, " layers."));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
