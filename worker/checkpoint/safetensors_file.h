#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/mapped_file.h"
#include "worker/checkpoint/tensor_source.h"

namespace lockstep {

// One safetensors file (github.com/huggingface/safetensors, "Format"): 64 bits
// of header size, the header in JSON, the tensors' bytes. As its own reader
// does, the tensors must fill the file: no hole, no overlap, nothing after
// them. F32, F16, BF16, F8_E4M3, I8, I32 and I64 are supported.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto file,
//                             SafetensorsFile::Open("model.safetensors"));
//
// Immutable; any thread. The tensors' bytes live as long as it does.
class SafetensorsFile {
 public:
  using Tensors = std::map<std::string, Tensor, std::less<>>;

  // INVALID_ARGUMENT names the file, the tensor, what is expected and what was
  // found; UNIMPLEMENTED a type that is not supported.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(
      const std::string& path);
  // For tests and fuzzing; `bytes` must outlive the result.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Parse(
      absl::Span<const uint8_t> bytes, const std::string& name);

  const std::string& path() const { return path_; }
  const Tensors& tensors() const { return tensors_; }
  void DropPages() const {
    if (file_ != nullptr) file_->DropPages();
  }

 private:
  SafetensorsFile() = default;

  std::string path_;
  std::unique_ptr<MappedFile> file_;  // null after Parse
  Tensors tensors_;
};

}  // namespace lockstep
