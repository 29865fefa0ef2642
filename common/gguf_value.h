#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <variant>
#include <vector>

#include "common/byte_cursor.h"

namespace lockstep {

using GgufStrings = std::vector<absl::string_view>;

// A value of GGUF metadata. Unsigned numbers are kept as uint64_t, signed ones
// as int64_t, floats as double; arrays of either sort of integer as int64_t.
using GgufValue =
    std::variant<bool, uint64_t, int64_t, double, absl::string_view,
                 GgufStrings, std::vector<int64_t>, std::vector<double>,
                 std::vector<bool>>;

// Reads a value: its type, then itself. Strings point into the cursor's bytes.
// INVALID_ARGUMENT names the file, the position, `what` and what is wrong.
absl::StatusOr<GgufValue> ReadGgufValue(ByteCursor& cursor,
                                        absl::string_view what);

// "a string", "an array of integers", …
const char* GgufTypeName(const GgufValue& value);

}  // namespace lockstep
