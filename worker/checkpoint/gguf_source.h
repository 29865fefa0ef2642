#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/gguf_file.h"
#include "worker/checkpoint/stacked_experts.h"
#include "worker/checkpoint/tensor_source.h"
#include "worker/model_spec/architecture.h"

namespace lockstep {

// The weights of a GGUF file, or of several that are one model, by Hugging
// Face's names.
class GgufSource final : public TensorSource {
 public:
  // INVALID_ARGUMENT names file and tensor where its bytes are not all in the
  // file or overlap with another's, or a row is not a whole number of blocks;
  // UNIMPLEMENTED a type that is not supported.
  static absl::StatusOr<std::unique_ptr<GgufSource>> Create(
      std::unique_ptr<GgufFile> first,
      std::vector<std::unique_ptr<GgufFile>> others = {});

  absl::StatusOr<Tensor> Get(absl::string_view name) const override;
  std::vector<std::string> Names() const override;
  void DropPages() const override;
  const std::string& path() const override { return files_[0]->path(); }
  const std::string& FileOf(absl::string_view name) const override;

 private:
  using Tensors = std::map<std::string, Tensor, std::less<>>;

  explicit GgufSource(std::vector<std::unique_ptr<GgufFile>> files);
  absl::Status AddTensors(const GgufFile& file,
                          const Architecture& architecture);
  // REQUIRES: `tensor` has the name that the file has for it.
  absl::Status AddTensor(const GgufFile& file, Tensor tensor,
                         const Architecture& architecture);
  // The same of one that holds all experts, by these names.
  absl::Status AddStack(const GgufFile& file, const Tensor& tensor,
                        std::vector<ExpertNames> names);
  // Whether an expert is there by itself as well.
  absl::Status CheckExperts() const;

  const std::vector<std::unique_ptr<GgufFile>> files_;
  Tensors tensors_;  // but for those of experts
  StackedExperts experts_;
  // By the name in tensors_, or in the file of a stack.
  std::map<std::string, const GgufFile*, std::less<>> file_of_;
};

}  // namespace lockstep
