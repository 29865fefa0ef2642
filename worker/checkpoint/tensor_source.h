#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/weights/dtype.h"

namespace lockstep {

// A rectangle of a matrix.
struct TensorPart {
  int64_t row_begin = 0, rows = 0;
  int64_t col_begin = 0, cols = 0;
};

// Makes the rows of a tensor that no file has as such: out of integers and
// their scales, say. Immutable; any thread.
class RowReader {
 public:
  virtual ~RowReader() = default;

  // Writes the part's rows one after another, in the tensor's type. REQUIRES:
  // it lies in the tensor; its columns are whole blocks of the type.
  virtual void Read(const TensorPart& part, uint8_t* out) const = 0;

  // What it is stored as, for people: "GPTQ-INT4".
  virtual std::string format() const = 0;
};

// A tensor that is mapped, not copied, its rows contiguous; or one that
// `reader` makes, which then lives as long as the source, and `bytes` is empty.
struct Tensor {
  std::string name;
  kernels::DType type = kernels::DType::kF32;
  std::vector<int64_t> shape;  // outermost first; the last one is a row
  absl::Span<const uint8_t> bytes;
  const RowReader* reader = nullptr;
};

// The weights of one model, by Hugging Face's names ("model.layers.0.mlp.
// down_proj.weight"), whatever file they lie in. Immutable; any thread. The
// bytes live as long as the source.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // NOT_FOUND names file and tensor.
  virtual absl::StatusOr<Tensor> Get(absl::string_view name) const = 0;

  // All names, sorted.
  virtual std::vector<std::string> Names() const = 0;

  // The tensors as files have them, where those of this source are made of
  // others.
  virtual const TensorSource& stored() const { return *this; }

  // Gives back the memory of what was read, which stays readable.
  virtual void DropPages() const {}

  // For messages: the file or folder.
  virtual const std::string& path() const = 0;

  // For messages: the file that `name` lies in, or would; path() where there is
  // no telling.
  virtual const std::string& FileOf(absl::string_view /*name*/) const {
    return path();
  }
};

}  // namespace lockstep
