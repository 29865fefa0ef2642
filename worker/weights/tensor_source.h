#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/weights/dtype.h"

namespace lockstep {

// A stored tensor, mapped, not copied. Rows are contiguous.
struct Tensor {
  std::string name;
  kernels::DType type = kernels::DType::kF32;
  std::vector<int64_t> shape;  // outermost first; the last one is a row
  absl::Span<const uint8_t> bytes;
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
