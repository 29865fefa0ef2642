#include "worker/checkpoint/rounded_source.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "common/status_macros.h"
#include "kernels/weights/encode_row.h"
#include "worker/checkpoint/tensor_part.h"

namespace lockstep {
namespace {

class RoundedRows final : public RowReader {
 public:
  RoundedRows(Tensor exact, kernels::DType type)
      : exact_(std::move(exact)), type_(type) {}

  void Read(const TensorPart& part, uint8_t* out) const override {
    std::vector<float> row(part.cols);
    TensorPart one = part;
    one.rows = 1;
    for (int64_t i = 0; i < part.rows; ++i, ++one.row_begin) {
      DecodePart(exact_, one, row.data());
      kernels::EncodeRow(type_, row.data(), part.cols, out);
      out += kernels::RowBytes(type_, part.cols);
    }
  }
  std::string format() const override { return kernels::DTypeName(type_); }

 private:
  const Tensor exact_;
  const kernels::DType type_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RoundedSource>> RoundedSource::Create(
    std::unique_ptr<TensorSource> exact, kernels::DType type,
    const std::map<std::string, std::string>& exact_names) {
  std::unique_ptr<RoundedSource> source(new RoundedSource(std::move(exact)));
  for (const auto& [name, exact_name] : exact_names) {
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor tensor, source->exact_->Get(exact_name));
    const auto refusal = [&](const auto&... what) {
      return absl::InvalidArgumentError(
          absl::StrCat(source->exact_->FileOf(exact_name), ": tensor ",
                       exact_name, " can not be rounded to ",
                       kernels::DTypeName(type), ": ", what..., "."));
    };
    if (!kernels::IsPlain(tensor.type)) {
      return refusal("it is ", FormatName(tensor),
                     " already, expected F32, F16 or BF16");
    }
    if (tensor.shape.back() % kernels::BlockValues(type) != 0) {
      return refusal("it has rows of ", tensor.shape.back(),
                     " values, expected a multiple of ",
                     kernels::BlockValues(type));
    }
    const std::vector<int64_t> shape = tensor.shape;
    source->readers_.push_back(
        std::make_unique<RoundedRows>(std::move(tensor), type));
    source->rounded_[name] = {
        name, type, shape, {}, source->readers_.back().get()};
  }
  return source;
}

absl::StatusOr<Tensor> RoundedSource::Get(absl::string_view name) const {
  const auto rounded = rounded_.find(name);
  return rounded == rounded_.end() ? exact_->Get(name) : rounded->second;
}

std::vector<std::string> RoundedSource::Names() const {
  std::vector<std::string> names = exact_->Names();
  for (const auto& [name, tensor] : rounded_) names.push_back(name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

const std::string& RoundedSource::FileOf(absl::string_view name) const {
  return exact_->FileOf(name);
}

}  // namespace lockstep
