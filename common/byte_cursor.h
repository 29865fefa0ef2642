#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {

// Reads the values of a binary file one after the other and never past its end.
// `what` names the value in the message of an error, `name` the file.
//
//   ByteCursor cursor(bytes, path);
//   LOCKSTEP_ASSIGN_OR_RETURN(uint32_t version,
//                             cursor.Read<uint32_t>("the version"));
//
// Numbers are little-endian. Not thread-safe; `bytes` must outlive it.
class ByteCursor {
 public:
  ByteCursor(absl::Span<const uint8_t> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}

  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }

  // INVALID_ARGUMENT: `what` is wrong, somewhere before position().
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ", before byte ", position_, ": ", what));
  }

  template <typename T>
  absl::StatusOr<T> Read(absl::string_view what) {
    static_assert(std::endian::native == std::endian::little);
    if (left() < sizeof(T)) return Truncated(what, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  // A string after its size in 64 bits.
  absl::StatusOr<absl::string_view> ReadString(absl::string_view what) {
    LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t size, Read<uint64_t>(what));
    if (left() < size) return Truncated(what, size);
    const absl::string_view text(
        reinterpret_cast<const char*>(bytes_.data()) + position_, size);
    position_ += size;
    return text;
  }

  // The number, in 64 bits, of items that follow, each of at least `item_bytes`
  // bytes; so it is safe to reserve as many.
  absl::StatusOr<uint64_t> ReadCount(absl::string_view what,
                                     uint64_t item_bytes) {
    LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t count, Read<uint64_t>(what));
    if (count <= left() / item_bytes) return count;
    return Error(absl::StrCat(what, " has ", count, " items, but only ", left(),
                              " bytes are left in the file."));
  }

 private:
  absl::Status Truncated(absl::string_view what, uint64_t size) const {
    return Error(absl::StrCat("the file is truncated: ", what, " takes ", size,
                              " bytes and ", left(), " are left."));
  }

  const absl::Span<const uint8_t> bytes_;
  const std::string name_;
  size_t position_ = 0;
};

}  // namespace lockstep
