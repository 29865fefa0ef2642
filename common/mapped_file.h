#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>

namespace lockstep {

// A file mapped read-only, unmapped by the destructor. Immutable; any thread.
// The file must not be truncated while it is mapped.
class MappedFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED or INVALID_ARGUMENT (a folder) name the path.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(
      const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::Span<const uint8_t> bytes() const { return bytes_; }
  absl::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  const std::string& path() const { return path_; }

  // Gives back the memory that holds what was read of it; what is read again is
  // fetched again.
  void DropPages() const;

 private:
  MappedFile(std::string path, absl::Span<const uint8_t> bytes);

  const std::string path_;
  const absl::Span<const uint8_t> bytes_;
};

}  // namespace lockstep
