#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/checkpoint/tensor_source.h"

namespace lockstep {

// The decoder of a checkpoint, by the names that a model with a head, and with
// nothing else, gives to its tensors: "model.norm.weight", "lm_head.weight".
//
//   LOCKSTEP_ASSIGN_OR_RETURN(const bool is_base, IsBaseModel(*source));
//   if (is_base) {
//     LOCKSTEP_ASSIGN_OR_RETURN(source, TextPart::OfBase(std::move(source)));
//   }
class TextPart : public TensorSource {
 public:
  // The language part of a model with vision: "language_model.model.norm.
  // weight", or in newer files "model.language_model.norm.weight". The other
  // tensors are not there. INVALID_ARGUMENT names two that would be one.
  static absl::StatusOr<std::unique_ptr<TextPart>> OfVisionModel(
      std::unique_ptr<TensorSource> whole);

  // What IsBaseModel says to be one: "norm.weight". The other tensors keep
  // their names.
  static absl::StatusOr<std::unique_ptr<TextPart>> OfBase(
      std::unique_ptr<TensorSource> whole);

  absl::StatusOr<Tensor> Get(absl::string_view name) const override;
  std::vector<std::string> Names() const override;
  void DropPages() const override { whole_->DropPages(); }
  const std::string& path() const override { return whole_->path(); }
  const std::string& FileOf(absl::string_view name) const override;

 private:
  // Absent where the tensor is none of the part.
  using Rename = std::function<std::optional<std::string>(absl::string_view)>;

  static absl::StatusOr<std::unique_ptr<TextPart>> Create(
      std::unique_ptr<TensorSource> whole, const Rename& rename);
  explicit TextPart(std::unique_ptr<TensorSource> whole);

  const std::unique_ptr<TensorSource> whole_;
  std::map<std::string, std::string, std::less<>> name_in_whole_;
};

// Whether a checkpoint was saved from transformers' class without a head, as
// most of those that make embeddings are: "layers.0.mlp.down_proj.weight" in
// place of "model.layers.0.…". INVALID_ARGUMENT names a tensor of each kind
// where there are both.
absl::StatusOr<bool> IsBaseModel(const TensorSource& source);

}  // namespace lockstep
