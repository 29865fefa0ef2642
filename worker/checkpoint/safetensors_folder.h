#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/checkpoint/safetensors_file.h"
#include "worker/checkpoint/tensor_source.h"

namespace lockstep {

// The weights of a Hugging Face folder: model.safetensors, or the files that
// model.safetensors.index.json names.
class SafetensorsFolder final : public TensorSource {
 public:
  // INVALID_ARGUMENT names the file, and the tensor where one is at fault:
  // those of SafetensorsFile, a file of the index or a tensor in it that is
  // missing, a tensor that is in two files.
  static absl::StatusOr<std::unique_ptr<SafetensorsFolder>> Open(
      const std::string& folder);

  absl::StatusOr<Tensor> Get(absl::string_view name) const override;
  std::vector<std::string> Names() const override;
  void DropPages() const override;
  const std::string& path() const override { return path_; }
  const std::string& FileOf(absl::string_view name) const override;

 private:
  SafetensorsFolder() = default;
  absl::Status AddFile(const std::string& name);
  absl::Status AddIndexedFiles(const std::string& index_path);

  std::string path_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  // Both point into files_.
  std::map<absl::string_view, const Tensor*> tensors_;
  std::map<absl::string_view, const SafetensorsFile*> file_of_;
};

}  // namespace lockstep
