#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>

namespace lockstep {

// The bytes that a size such as "2GiB", "512MiB" or "65536" says: a whole
// number, then KiB, MiB, GiB, TiB or nothing. Nothing for any other text, and
// where the bytes are too many for the type.
std::optional<int64_t> ParseByteSize(absl::string_view text);

}  // namespace lockstep
