#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/byte_cursor.h"
#include "common/gguf_value.h"
#include "common/mapped_file.h"

namespace lockstep {

// A GGUF file, versions 2 and 3 (ggml's docs/gguf.md): metadata and where the
// tensors lie. Every size and offset is checked against the file's size before
// it is used, so a truncated or lying file is an error, never a crash. How many
// bytes a tensor takes depends on its type, which is not known here: only its
// begin is checked.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto file, GgufFile::Open("model.gguf"));
//   LOCKSTEP_ASSIGN_OR_RETURN(uint64_t layers,
//                             file->GetUint("llama.block_count"));
//
// Immutable; any thread. Views point into the mapped file and live as long as
// it does.
class GgufFile {
 public:
  using Strings = GgufStrings;
  using Value = GgufValue;

  struct TensorInfo {
    uint32_t type = 0;           // ggml's number
    std::vector<int64_t> shape;  // outermost first: the reverse of the file's
    uint64_t offset = 0;         // of the first byte, from the file's start
  };

  // INVALID_ARGUMENT names the file, what is wrong, and where.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Open(
      const std::string& path);
  // For tests and fuzzing; `bytes` must outlive the result.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Parse(
      absl::Span<const uint8_t> bytes, const std::string& name);

  const std::string& path() const { return path_; }
  void DropPages() const {
    if (file_ != nullptr) file_->DropPages();
  }
  absl::Span<const uint8_t> bytes() const { return bytes_; }

  // Null where there is no such key.
  const Value* Find(absl::string_view key) const;

  // NOT_FOUND names file and key; INVALID_ARGUMENT the type expected. A signed
  // integer that is not negative passes as unsigned.
  absl::StatusOr<uint64_t> GetUint(absl::string_view key) const;
  absl::StatusOr<double> GetDouble(absl::string_view key) const;
  absl::StatusOr<absl::string_view> GetString(absl::string_view key) const;
  absl::StatusOr<const Strings*> GetStrings(absl::string_view key) const;
  absl::StatusOr<const std::vector<int64_t>*> GetInts(
      absl::string_view key) const;

  const std::map<std::string, Value, std::less<>>& metadata() const {
    return metadata_;
  }
  const std::map<std::string, TensorInfo, std::less<>>& tensors() const {
    return tensors_;
  }

 private:
  GgufFile() = default;
  absl::Status ParseAll();
  absl::Status ParseMetadata(ByteCursor& cursor, uint64_t count);
  absl::Status ParseTensors(ByteCursor& cursor, uint64_t count);
  // Makes the tensors' offsets count from the file's start.
  absl::Status PlaceTensors(const ByteCursor& cursor);

  std::string path_;
  std::unique_ptr<MappedFile> file_;  // null after Parse
  absl::Span<const uint8_t> bytes_;
  std::map<std::string, Value, std::less<>> metadata_;
  std::map<std::string, TensorInfo, std::less<>> tensors_;
};

}  // namespace lockstep
