#include "worker/checkpoint/fused_experts.h"

#include <absl/status/status.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "kernels/weights/dtype.h"
#include "worker/checkpoint/tensor_part.h"
#include "worker/model_spec/tensor_names.h"

namespace lockstep {
namespace {

// After "model.layers.N.".
constexpr char kGateUp[] = "mlp.experts.gate_up_proj";
constexpr char kDown[] = "mlp.experts.down_proj";
constexpr char kRouter[] = "mlp.gate";

constexpr char kNotQuantized[] =
    "experts that are one tensor can not be quantized. Take a checkpoint that "
    "has the matrices of each expert apart, or one that is not quantized, with "
    "--quantize.";

// What follows the name of such a tensor: "" of itself, "_packed" or
// ".scales" of what a quantized one is made of. Absent for any other name.
std::optional<absl::string_view> EndOfFusedName(absl::string_view name) {
  for (const absl::string_view fused : {kGateUp, kDown}) {
    const size_t at = name.find(fused);
    if (at == absl::string_view::npos || at == 0 || name[at - 1] != '.') {
      continue;
    }
    const absl::string_view end = name.substr(at + fused.size());
    if (end.empty() || end[0] == '_' || end[0] == '.') return end;
  }
  return std::nullopt;
}

}  // namespace

bool HasFusedExperts(const TensorSource& source) {
  const std::vector<std::string> names = source.Names();
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return EndOfFusedName(name).has_value();
  });
}

absl::StatusOr<std::unique_ptr<FusedExperts>> FusedExperts::Create(
    std::unique_ptr<TensorSource> whole, const ModelConfig& config) {
  std::unique_ptr<FusedExperts> source(new FusedExperts(std::move(whole)));
  for (const std::string& name : source->whole_->Names()) {
    const auto end = EndOfFusedName(name);
    if (!end.has_value() || end->empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        source->whole_->FileOf(name), ": tensor \"", absl::CHexEscape(name),
        "\" is not known: ", kNotQuantized));
  }
  for (int layer = 0; layer < config.num_layers; ++layer) {
    if (!config.layers[layer].has_experts) continue;
    LOCKSTEP_RETURN_IF_ERROR(source->AddLayer(layer, config));
  }
  for (const std::string& name : source->whole_->Names()) {
    const auto* stack = source->experts_.StackOf(name);
    if (stack != nullptr) return source->ThereTwice(name, stack->tensor.name);
  }
  return source;
}

absl::Status FusedExperts::AddLayer(int layer, const ModelConfig& config) {
  const TensorNames& names = config.names;
  const std::string prefix = absl::StrCat("model.layers.", layer, ".");
  const std::string gate_up_name = absl::StrCat(prefix, kGateUp);
  const std::string down_name = absl::StrCat(prefix, kDown);
  // Layers may differ.
  if (!whole_->Get(gate_up_name).ok() && !whole_->Get(down_name).ok()) {
    return absl::OkStatus();
  }
  const int64_t experts = config.experts.num_experts;
  const int64_t intermediate = config.experts.intermediate_size;
  const int64_t hidden = config.hidden_size;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor gate_up,
      Take(gate_up_name, {experts, 2 * intermediate, hidden}));
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor down,
                            Take(down_name, {experts, hidden, intermediate}));
  const std::string before =
      absl::StrCat("model.layers.", layer, ".", names.experts, ".");
  const auto add = [&](const char* projection, const Tensor& tensor,
                       int64_t first_row, int64_t rows) {
    experts_.Add({before, absl::StrCat(".", projection, ".weight")},
                 {.tensor = tensor, .first_row = first_row, .rows = rows});
  };
  add(names.expert_gate, gate_up, 0, intermediate);
  add(names.expert_up, gate_up, intermediate, intermediate);
  add(names.expert_down, down, 0, hidden);
  return AddRouter(layer, names);
}

absl::Status FusedExperts::AddRouter(int layer, const TensorNames& names) {
  if (absl::string_view(names.router) == kRouter) return absl::OkStatus();
  const std::string stored = LayerTensorName(layer, kRouter);
  // By its own name, or missing.
  if (!whole_->Get(stored).ok()) return absl::OkStatus();
  hidden_.insert(stored);
  const std::string name = LayerTensorName(layer, names.router);
  renamed_[name] = stored;
  return whole_->Get(name).ok() ? ThereTwice(name, stored) : absl::OkStatus();
}

absl::StatusOr<Tensor> FusedExperts::Take(const std::string& name,
                                          const std::vector<int64_t>& shape) {
  const auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat(whole_->FileOf(name), ": tensor ", name, " ", what...));
  };
  const auto tensor = whole_->Get(name);
  if (!tensor.ok()) {
    return error("is missing, expected one of shape ", ShapeText(shape), ".");
  }
  if (tensor->shape != shape) {
    return error("has the shape ", ShapeText(tensor->shape), ", expected ",
                 ShapeText(shape), ".");
  }
  if (!kernels::HoldsWeights(tensor->type) || tensor->reader != nullptr) {
    return error("is of type ", kernels::DTypeName(tensor->type),
                 ", expected weights: ", kNotQuantized);
  }
  hidden_.insert(name);
  return *tensor;
}

absl::Status FusedExperts::ThereTwice(const std::string& name,
                                      const std::string& fused) const {
  return absl::InvalidArgumentError(
      absl::StrCat(whole_->FileOf(name), ": tensor ", name,
                   " is there, and a part of ", fused, " as well."));
}

absl::StatusOr<Tensor> FusedExperts::Get(absl::string_view name) const {
  std::optional<Tensor> of_expert = experts_.Find(name);
  if (of_expert.has_value()) return *std::move(of_expert);
  const auto stored = renamed_.find(name);
  if (stored == renamed_.end()) return whole_->Get(name);
  LOCKSTEP_ASSIGN_OR_RETURN(Tensor tensor, whole_->Get(stored->second));
  tensor.name = std::string(name);
  return tensor;
}

std::vector<std::string> FusedExperts::Names() const {
  std::vector<std::string> names;
  experts_.AddNames(&names);
  for (const auto& [name, stored] : renamed_) names.push_back(name);
  for (std::string& name : whole_->Names()) {
    if (hidden_.count(name) == 0) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

const std::string& FusedExperts::FileOf(absl::string_view name) const {
  const auto* stack = experts_.StackOf(name);
  if (stack != nullptr) return whole_->FileOf(stack->tensor.name);
  const auto stored = renamed_.find(name);
  return whole_->FileOf(stored == renamed_.end() ? name : stored->second);
}

}  // namespace lockstep
