#include "frontend/discovery/api_status.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {
namespace {

constexpr size_t kMostBytes = 300;

absl::StatusCode CodeOf(int code) {
  switch (code) {
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 429:
      return absl::StatusCode::kUnavailable;
    default:
      return code >= 500 ? absl::StatusCode::kUnavailable
                         : absl::StatusCode::kInvalidArgument;
  }
}

std::string MessageOf(const nlohmann::json& object) {
  if (!object.is_object()) return "";
  const auto found = object.find("message");
  if (found == object.end() || !found->is_string()) return "";
  return absl::Utf8SafeCHexEscape(
      found->get_ref<const std::string&>().substr(0, kMostBytes));
}

}  // namespace

absl::Status FromApiStatus(int code, const nlohmann::json& object) {
  const std::string message = MessageOf(object);
  return {CodeOf(code), absl::StrCat("the API server answers ", code,
                                     message.empty() ? "" : ": ", message)};
}

}  // namespace lockstep
