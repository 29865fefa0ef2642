#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "worker/checkpoint/stacked_experts.h"
#include "worker/checkpoint/tensor_source.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/tensor_names.h"

namespace lockstep {

// A checkpoint whose layers keep the matrices of all experts as one tensor, as
// transformers 5 has them in memory (integrations/moe.py), by the names of one
// that keeps each expert's apart:
//
//   model.layers.3.mlp.experts.gate_up_proj   [experts, 2·intermediate, hidden]
//   model.layers.3.mlp.experts.down_proj      [experts, hidden, intermediate]
//
// Of each expert's rows of the first, gate's come before up's. The experts are
// parts of what is mapped, where they lie; nothing is copied. Of Mixtral the
// router has another name in such files, too.
//
//   if (HasFusedExperts(*source)) {
//     LOCKSTEP_ASSIGN_OR_RETURN(
//         source, FusedExperts::Create(std::move(source), config));
//   }
class FusedExperts final : public TensorSource {
 public:
  // INVALID_ARGUMENT names file and tensor: one of a layer's two that is
  // missing, or has another shape than `config` says or no weights; what
  // quantized ones would be made of; an expert that is there by itself as well.
  // A layer without experts is left as it is.
  static absl::StatusOr<std::unique_ptr<FusedExperts>> Create(
      std::unique_ptr<TensorSource> whole, const ModelConfig& config);

  absl::StatusOr<Tensor> Get(absl::string_view name) const override;
  std::vector<std::string> Names() const override;
  void DropPages() const override { whole_->DropPages(); }
  const std::string& path() const override { return whole_->path(); }
  const std::string& FileOf(absl::string_view name) const override;

 private:
  explicit FusedExperts(std::unique_ptr<TensorSource> whole)
      : whole_(std::move(whole)) {}
  absl::Status AddLayer(int layer, const ModelConfig& config);
  // A tensor of the layer that is to be there; what it is made into is hidden.
  absl::StatusOr<Tensor> Take(const std::string& name,
                              const std::vector<int64_t>& shape);
  // Mixtral's router by the name that it has in files with experts apart.
  absl::Status AddRouter(int layer, const TensorNames& names);
  // The error that a tensor is there by itself as well.
  absl::Status ThereTwice(const std::string& name,
                          const std::string& fused) const;

  const std::unique_ptr<TensorSource> whole_;
  StackedExperts experts_;
  std::map<std::string, std::string, std::less<>> renamed_;  // to stored ones
  std::set<std::string, std::less<>> hidden_;
};

// Whether the experts of a layer, of any, are one tensor, or what a quantized
// one is made of.
bool HasFusedExperts(const TensorSource& source);

}  // namespace lockstep
