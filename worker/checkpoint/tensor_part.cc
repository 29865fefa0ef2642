#include "worker/checkpoint/tensor_part.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cstring>

#include "kernels/weights/dtype.h"

namespace lockstep {

TensorPart WholeOf(const Tensor& tensor) {
  TensorPart whole = {.rows = 1, .cols = 1};
  for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) {
    whole.rows *= tensor.shape[i];
  }
  if (!tensor.shape.empty()) whole.cols = tensor.shape.back();
  return whole;
}

void ReadPart(const Tensor& tensor, const TensorPart& part, uint8_t* out) {
  if (tensor.reader != nullptr) return tensor.reader->Read(part, out);
  const size_t stride = kernels::RowBytes(tensor.type, tensor.shape.back());
  const size_t row_bytes = kernels::RowBytes(tensor.type, part.cols);
  const uint8_t* row = tensor.bytes.data() + part.row_begin * stride +
                       kernels::RowBytes(tensor.type, part.col_begin);
  for (int64_t i = 0; i < part.rows; ++i) {
    std::memcpy(out + i * row_bytes, row + i * stride, row_bytes);
  }
}

void DecodePart(const Tensor& tensor, const TensorPart& part, float* out) {
  const size_t row_bytes = kernels::RowBytes(tensor.type, part.cols);
  std::vector<uint8_t> row(row_bytes);
  for (int64_t i = 0; i < part.rows; ++i) {
    ReadPart(tensor,
             {.row_begin = part.row_begin + i,
              .rows = 1,
              .col_begin = part.col_begin,
              .cols = part.cols},
             row.data());
    kernels::DecodeRow(tensor.type, row.data(), part.cols, out + i * part.cols);
  }
}

std::string FormatName(const Tensor& tensor) {
  return tensor.reader == nullptr ? kernels::DTypeName(tensor.type)
                                  : tensor.reader->format();
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace lockstep
