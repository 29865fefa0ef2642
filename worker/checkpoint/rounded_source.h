#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/weights/dtype.h"
#include "worker/checkpoint/tensor_source.h"

namespace lockstep {

// Some matrices of another source rounded to Q8_0 or Q4_0 as they are read
// (kernels/weights/encode_row.h); its other tensors as they are.
class RoundedSource final : public TensorSource {
 public:
  // `exact_names` has the name in `exact` of each tensor that is rounded.
  // INVALID_ARGUMENT names file and tensor where one is not of floats, or has
  // rows that are not whole blocks of 32.
  static absl::StatusOr<std::unique_ptr<RoundedSource>> Create(
      std::unique_ptr<TensorSource> exact, kernels::DType type,
      const std::map<std::string, std::string>& exact_names);

  absl::StatusOr<Tensor> Get(absl::string_view name) const override;
  std::vector<std::string> Names() const override;
  const TensorSource& stored() const override { return exact_->stored(); }
  void DropPages() const override { exact_->DropPages(); }
  const std::string& path() const override { return exact_->path(); }
  const std::string& FileOf(absl::string_view name) const override;

 private:
  explicit RoundedSource(std::unique_ptr<TensorSource> exact)
      : exact_(std::move(exact)) {}

  const std::unique_ptr<TensorSource> exact_;
  std::vector<std::unique_ptr<RowReader>> readers_;
  std::map<std::string, Tensor, std::less<>> rounded_;
};

}  // namespace lockstep
