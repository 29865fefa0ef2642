#include <absl/strings/str_cat.h>

#include <cstddef>
#include <cstdint>

#include "common/byte_size.h"

// Whatever the text: nothing, or a size that is read again from its digits.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto bytes = lockstep::ParseByteSize(text);
  if (!bytes.has_value()) return 0;
  if (*bytes < 0) __builtin_trap();
  if (lockstep::ParseByteSize(absl::StrCat(*bytes)) != bytes) __builtin_trap();
  return 0;
}
