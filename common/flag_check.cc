#include "common/flag_check.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

namespace lockstep {

absl::Status CheckAddressFlag(absl::string_view flag, absl::string_view address,
                              int least_port) {
  constexpr int kMaxPort = 65'535;
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < least_port || port > kMaxPort) {
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
