#include "common/flag_check.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

namespace lockstep {

absl::Status CheckAddressFlag(absl::string_view flag, absl::string_view address,
                              int least_port) {
  const size_t colon = address.rfind(':');
  const absl::string_view host = address.substr(0, colon);
  const absl::string_view digits =
      colon == absl::string_view::npos ? "" : address.substr(colon + 1);
  int port = -1;
  // SimpleAtoi would let signs and spaces pass.
  if (host.empty() || host == "[]" ||
      !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(digits, &port) || port < least_port ||
      port > kMaxPort) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--", flag, " is \"", address, "\"; it must be host:port with a port ",
        "of ", least_port, " to ", kMaxPort, "."));
  }
  return absl::OkStatus();
}

absl::Status CheckRangeFlag(absl::string_view flag, int64_t value,
                            int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, " is ", value, "; it must be ", least, " to ", most, "."));
}

}  // namespace lockstep
