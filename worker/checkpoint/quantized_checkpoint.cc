#include "worker/checkpoint/quantized_checkpoint.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "worker/checkpoint/tensor_part.h"

namespace lockstep {
namespace {

bool AllZero(const Tensor& tensor) {
  std::vector<float> values(tensor.shape.back());
  DecodePart(tensor, WholeOf(tensor), values.data());
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return value == 0; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<QuantizedCheckpoint>>
QuantizedCheckpoint::Create(std::unique_ptr<TensorSource> stored,
                            const QuantizationConfig& config) {
  std::unique_ptr<QuantizedCheckpoint> checkpoint(
      new QuantizedCheckpoint(std::move(stored)));
  LOCKSTEP_RETURN_IF_ERROR(checkpoint->AddModules(config));
  return checkpoint;
}

absl::Status QuantizedCheckpoint::AddModules(const QuantizationConfig& config) {
  std::map<std::string, QuantizedModule> modules;
  for (const std::string& name : stored_->Names()) {
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor tensor, stored_->Get(name));
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos) continue;
    const std::string part = name.substr(dot + 1);
    if (!IsPart(config.method, part, tensor.type)) continue;
    QuantizedModule& module = modules[name.substr(0, dot)];
    module.name = name.substr(0, dot);
    module.file = stored_->FileOf(name);
    module.parts[part] = std::move(tensor);
    hidden_.insert(name);
  }
  for (const auto& [name, module] : modules) {
    LOCKSTEP_RETURN_IF_ERROR(Add(module, config));
  }
  return absl::OkStatus();
}

absl::Status QuantizedCheckpoint::Add(const QuantizedModule& module,
                                      const QuantizationConfig& config) {
  const auto& plain = config.plain_modules;
  const std::string& first = module.parts.begin()->first;
  if (std::find(plain.begin(), plain.end(), module.name) != plain.end()) {
    return module.Error(
        first, "the quantization_config says its module is not quantized");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(QuantizedWeight weight, OpenModule(module, config));
  const std::string name = absl::StrCat(module.name, ".weight");
  if (stored_->Get(name).ok() && module.Find("weight") == nullptr) {
    return module.Error(first, "its module has a weight as well");
  }
  made_[name] = {name, weight.type, weight.shape, {}, weight.reader.get()};
  part_of_made_[name] = absl::StrCat(module.name, ".", first);
  readers_.push_back(std::move(weight.reader));
  // AutoGPTQ writes a bias for each module, of zeros where there is none.
  const std::string bias_name = absl::StrCat(module.name, ".bias");
  const auto bias = stored_->Get(bias_name);
  if (bias.ok() && bias->shape.size() == 1 && AllZero(*bias)) {
    hidden_.insert(bias_name);
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> QuantizedCheckpoint::Get(absl::string_view name) const {
  const auto made = made_.find(name);
  return made == made_.end() ? stored_->Get(name) : made->second;
}

std::vector<std::string> QuantizedCheckpoint::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : made_) names.push_back(name);
  for (std::string& name : stored_->Names()) {
    if (hidden_.count(name) == 0) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

const std::string& QuantizedCheckpoint::FileOf(absl::string_view name) const {
  const auto part = part_of_made_.find(name);
  return stored_->FileOf(part == part_of_made_.end() ? name : part->second);
}

}  // namespace lockstep
