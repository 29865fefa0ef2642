#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/gguf_file.h"
#include "worker/weights/tensor_source.h"

namespace lockstep {

// The weights of a GGUF file, by Hugging Face's names.
class GgufSource final : public TensorSource {
 public:
  // INVALID_ARGUMENT names file and tensor where its bytes are not all in the
  // file or overlap with another's, or a row is not a whole number of blocks;
  // UNIMPLEMENTED a type that is not supported.
  static absl::StatusOr<std::unique_ptr<GgufSource>> Create(
      std::unique_ptr<GgufFile> file);

  absl::StatusOr<Tensor> Get(absl::string_view name) const override;
  std::vector<std::string> Names() const override;
  void DropPages() const override { file_->DropPages(); }
  const std::string& path() const override { return file_->path(); }

 private:
  explicit GgufSource(std::unique_ptr<GgufFile> file);
  absl::Status AddTensors();
  absl::Status CheckOverlaps() const;

  const std::unique_ptr<GgufFile> file_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace lockstep
