#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <cstdint>

namespace lockstep {

inline constexpr int kMaxPort = 65'535;

// INVALID_ARGUMENT naming the flag, its value and what it may be.

// host:port, with a port from `least_port` on: 0, any free one, is only for an
// address to listen on.
absl::Status CheckAddressFlag(absl::string_view flag, absl::string_view address,
                              int least_port);

absl::Status CheckRangeFlag(absl::string_view flag, int64_t value,
                            int64_t least, int64_t most);

}  // namespace lockstep
