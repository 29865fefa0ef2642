#include "worker/model_spec/tensor_names.h"

#include <absl/strings/str_cat.h>

namespace lockstep {

std::string LayerTensorName(int layer, absl::string_view name) {
  return absl::StrCat("model.layers.", layer, ".", name, ".weight");
}

std::string LayerBiasName(int layer, absl::string_view name) {
  return absl::StrCat("model.layers.", layer, ".", name, ".bias");
}

std::string RouterBiasName(int layer, const TensorNames& names) {
  return absl::StrCat("model.layers.", layer, ".", names.router_bias);
}

std::string ExpertTensorName(int layer, absl::string_view experts, int expert,
                             absl::string_view name) {
  return LayerTensorName(layer, absl::StrCat(experts, ".", expert, ".", name));
}

}  // namespace lockstep
