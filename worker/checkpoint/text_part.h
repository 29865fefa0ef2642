#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/checkpoint/tensor_source.h"

namespace lockstep {

// The language part of a model with vision, by the names that a model of its
// own has: "language_model.model.norm.weight", or in newer files
// "model.language_model.norm.weight", is "model.norm.weight". The other tensors
// are not there.
class TextPart : public TensorSource {
 public:
  explicit TextPart(std::unique_ptr<TensorSource> whole);

  absl::StatusOr<Tensor> Get(absl::string_view name) const override;
  std::vector<std::string> Names() const override;
  void DropPages() const override { whole_->DropPages(); }
  const std::string& path() const override { return whole_->path(); }
  const std::string& FileOf(absl::string_view name) const override;

 private:
  const std::unique_ptr<TensorSource> whole_;
  std::map<std::string, std::string, std::less<>> name_in_whole_;
};

}  // namespace lockstep
