#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/checkpoint/tensor_source.h"

namespace lockstep {

// Tensors that no file has, for measurements: matrices in BF16 of random
// values, vectors of ones. Values are a function of the tensor's name and of
// their place, the same on every rank. Nothing is held: rows are made as they
// are read.
class RandomSource final : public TensorSource {
 public:
  // Of these names and shapes, of one or two dimensions; `path` for messages.
  RandomSource(std::string path,
               const std::map<std::string, std::vector<int64_t>>& shapes);

  absl::StatusOr<Tensor> Get(absl::string_view name) const override;
  std::vector<std::string> Names() const override;
  const std::string& path() const override { return path_; }

 private:
  const std::string path_;
  std::vector<std::unique_ptr<RowReader>> readers_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace lockstep
