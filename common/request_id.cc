#include "common/request_id.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <random>

namespace lockstep {

absl::Status CheckRequestId(absl::string_view field, absl::string_view id) {
  if (id.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is empty; leave it out to have one made."));
  }
  if (id.size() > kMaxRequestIdBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is ", id.size(), " bytes long; at most ",
                     kMaxRequestIdBytes, " are allowed."));
  }
  const auto is_allowed = [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  };
  const auto bad = std::find_if_not(id.begin(), id.end(), is_allowed);
  if (bad == id.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " has a character outside [A-Za-z0-9._-] at byte ",
                   bad - id.begin(), "."));
}

std::string MakeRequestId(absl::string_view prefix) {
  constexpr size_t kRoomForHex = 17;
  std::random_device random;
  return absl::StrCat(prefix.substr(0, kMaxRequestIdBytes - kRoomForHex), "-",
                      absl::StrFormat("%08x%08x", random(), random()));
}

}  // namespace lockstep
