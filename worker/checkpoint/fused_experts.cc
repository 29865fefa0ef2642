#include "worker/checkpoint/fused_experts.h"

#include <absl/status/status.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

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

}  // namespace

bool HasFusedExperts(const TensorSource& source) {
  const std::vector<std::string> names = source.Names();
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return absl::EndsWith(name, absl::StrCat(".", kGateUp)) ||
           absl::EndsWith(name, absl::StrCat(".", kDown));
  });
}

absl::StatusOr<std::unique_ptr<FusedExperts>> FusedExperts::Create(
    std::unique_ptr<TensorSource> whole, const ModelConfig& config) {
  std::unique_ptr<FusedExperts> source(new FusedExperts(std::move(whole)));
  for (int layer = 0; layer < config.num_layers; ++layer) {
    if (!config.layers[layer].has_experts) continue;
    LOCKSTEP_RETURN_IF_ERROR(source->AddLayer(layer, config));
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
  for (int i = 0; i < config.experts.num_experts; ++i) {
    const auto name = [&](const char* projection) {
      return ExpertTensorName(layer, names.experts, i, projection);
    };
    const int64_t gate = 2 * i * intermediate;
    LOCKSTEP_RETURN_IF_ERROR(
        AddExpert(gate_up, gate, intermediate, name(names.expert_gate)));
    LOCKSTEP_RETURN_IF_ERROR(AddExpert(gate_up, gate + intermediate,
                                       intermediate, name(names.expert_up)));
    LOCKSTEP_RETURN_IF_ERROR(
        AddExpert(down, i * hidden, hidden, name(names.expert_down)));
  }
  if (absl::string_view(names.router) == kRouter) return absl::OkStatus();
  const std::string router = LayerTensorName(layer, kRouter);
  auto routes = whole_->Get(router);
  if (!routes.ok()) return absl::OkStatus();  // by its own name, or missing
  hidden_.insert(router);
  routes->name = LayerTensorName(layer, names.router);
  return Add(router, *std::move(routes));
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
                 ", expected weights: experts that are one tensor can not be "
                 "quantized.");
  }
  hidden_.insert(name);
  return *tensor;
}

absl::Status FusedExperts::AddExpert(const Tensor& fused, int64_t first_row,
                                     int64_t rows, const std::string& name) {
  const int64_t cols = fused.shape.back();
  const size_t row_bytes = kernels::RowBytes(fused.type, cols);
  return Add(fused.name,
             {name,
              fused.type,
              {rows, cols},
              fused.bytes.subspan(first_row * row_bytes, rows * row_bytes)});
}

absl::Status FusedExperts::Add(const std::string& fused_name, Tensor part) {
  const std::string name = part.name;
  if (whole_->Get(name).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(whole_->FileOf(name), ": tensor ", name,
                     " is there, and a part of ", fused_name, " as well."));
  }
  whole_of_[name] = fused_name;
  parts_[name] = std::move(part);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> FusedExperts::Get(absl::string_view name) const {
  const auto part = parts_.find(name);
  return part == parts_.end() ? whole_->Get(name) : part->second;
}

std::vector<std::string> FusedExperts::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, part] : parts_) names.push_back(name);
  for (std::string& name : whole_->Names()) {
    if (hidden_.count(name) == 0) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

const std::string& FusedExperts::FileOf(absl::string_view name) const {
  const auto whole = whole_of_.find(name);
  return whole_->FileOf(whole == whole_of_.end() ? name : whole->second);
}

}  // namespace lockstep
