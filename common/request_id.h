#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <cstddef>
#include <string>

namespace lockstep {

// The ids that clients and servers give to requests: in logs, headers, fields.

inline constexpr size_t kMaxRequestIdBytes = 128;

// INVALID_ARGUMENT, beginning with `field`, unless it is 1 to 128 characters of
// [A-Za-z0-9._-]: fit for a log and for being echoed.
absl::Status CheckRequestId(absl::string_view field, absl::string_view id);

// "PREFIX-" and 16 random hexadecimal digits; a prefix that would make it too
// long is cut. Any thread.
std::string MakeRequestId(absl::string_view prefix);

}  // namespace lockstep
