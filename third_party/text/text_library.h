#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <utility>

#include "third_party/text/lockstep_text.h"

namespace lockstep {

// What the Rust library hands out, and how it fails, in C++.
//
//   RustBytes out, error;
//   LOCKSTEP_RETURN_IF_ERROR(ToStatus(lt_render(…, &out, &error), error));
//   return out.ToString();

class RustBytes : public LtBytes {
 public:
  RustBytes() : LtBytes{nullptr, 0} {}
  ~RustBytes() { lt_bytes_free(this); }
  RustBytes(const RustBytes&) = delete;
  RustBytes& operator=(const RustBytes&) = delete;

  std::string ToString() const {
    return std::string(reinterpret_cast<const char*>(data), size);
  }
};

class RustIds : public LtIds {
 public:
  RustIds() : LtIds{nullptr, 0} {}
  ~RustIds() { lt_ids_free(this); }
  RustIds(const RustIds&) = delete;
  RustIds& operator=(const RustIds&) = delete;

  absl::Span<const uint32_t> span() const { return {data, size}; }
};

// A text as the library takes it.
inline const uint8_t* Data(absl::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

// INVALID_ARGUMENT with the library's sentence; INTERNAL for a panic.
inline absl::Status ToStatus(LtResult result, const RustBytes& error) {
  if (result == LT_OK) return absl::OkStatus();
  if (result == LT_INVALID) return absl::InvalidArgumentError(error.ToString());
  return absl::InternalError("a fault of the text library: " +
                             error.ToString());
}

}  // namespace lockstep
