#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "worker/checkpoint/quantized_module.h"
#include "worker/checkpoint/tensor_source.h"
#include "worker/model_spec/quantization_config.h"

namespace lockstep {

// The weights of a Hugging Face checkpoint that is quantized, by the names of
// one that is not: "…q_proj.weight" is made of "…q_proj.qweight" and others.
// What is not quantized is as it is stored.
class QuantizedCheckpoint final : public TensorSource {
 public:
  // INVALID_ARGUMENT names file and tensor: a part that is missing, or does not
  // fit the others or `config`; a module that `config` says is not quantized.
  static absl::StatusOr<std::unique_ptr<QuantizedCheckpoint>> Create(
      std::unique_ptr<TensorSource> stored, const QuantizationConfig& config);

  absl::StatusOr<Tensor> Get(absl::string_view name) const override;
  std::vector<std::string> Names() const override;
  const TensorSource& stored() const override { return *stored_; }
  void DropPages() const override { stored_->DropPages(); }
  const std::string& path() const override { return stored_->path(); }
  const std::string& FileOf(absl::string_view name) const override;

 private:
  explicit QuantizedCheckpoint(std::unique_ptr<TensorSource> stored)
      : stored_(std::move(stored)) {}
  absl::Status AddModules(const QuantizationConfig& config);
  absl::Status Add(const QuantizedModule& module,
                   const QuantizationConfig& config);

  const std::unique_ptr<TensorSource> stored_;
  std::vector<std::unique_ptr<RowReader>> readers_;
  std::map<std::string, Tensor, std::less<>> made_;
  std::map<std::string, std::string, std::less<>> part_of_made_;
  std::set<std::string, std::less<>>
      hidden_;  // stored, of no use by themselves
};

}  // namespace lockstep
