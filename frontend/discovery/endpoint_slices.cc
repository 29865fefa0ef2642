#include "frontend/discovery/endpoint_slices.h"

#include <absl/status/statusor.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <arpa/inet.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/flag_check.h"
#include "common/status_macros.h"
#include "common/strict_json.h"
#include "frontend/discovery/api_status.h"

namespace lockstep {
namespace {

using ::nlohmann::json;

constexpr char kPortName[] = "grpc";
constexpr size_t kMostVersionBytes = 64;

// The value of a key; null where there is none, or no object to have it.
const json& At(const json& object, const char* key) {
  static const json* const null = new json;
  if (!object.is_object()) return *null;
  const auto found = object.find(key);
  return found == object.end() ? *null : *found;
}

std::string Text(const json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("what the API server sent is not ", what));
}

// It becomes part of a URL.
absl::StatusOr<std::string> VersionOf(const json& object) {
  const std::string version =
      Text(At(At(object, "metadata"), "resourceVersion"));
  const bool is_fit =
      !version.empty() && version.size() <= kMostVersionBytes &&
      std::all_of(version.begin(), version.end(), absl::ascii_isalnum);
  if (!is_fit) return Malformed("of a version that a watch can go on from");
  return version;
}

// Of an event that is one.
absl::Status ErrorOf(const json& object) {
  const json& code = At(object, "code");
  if (!code.is_number_integer() || code < 400 || code > 599) {
    return Malformed("an error");
  }
  return FromApiStatus(code.get<int>(), object);
}

// A missing condition is unknown, which counts as ready.
bool Counts(const json& endpoint) {
  const json& conditions = At(endpoint, "conditions");
  return At(conditions, "ready") != false &&
         At(conditions, "terminating") != true;
}

// None: there is none, and so nothing to reach.
absl::StatusOr<std::optional<int>> PortOf(const json& slice) {
  const json& ports = At(slice, "ports");
  if (!ports.is_array() || ports.empty()) return std::nullopt;
  const auto named = std::find_if(
      ports.begin(), ports.end(),
      [](const json& port) { return At(port, "name") == kPortName; });
  if (named == ports.end() && ports.size() > 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("the Service has ", ports.size(),
                     " ports and none is called ", kPortName));
  }
  const json& number =
      At(named == ports.end() ? ports.front() : *named, "port");
  if (number.is_null()) return std::nullopt;  // any
  if (!number.is_number_integer() || number < 1 || number > kMaxPort) {
    return Malformed("a port");
  }
  return number.get<int>();
}

bool IsAddress(int family, const std::string& address) {
  in6_addr parsed;
  return inet_pton(family, address.c_str(), &parsed) == 1;
}

}  // namespace

absl::Status EndpointSlices::Parse(const json& object, Slice* slice) {
  const std::string type = Text(At(object, "addressType"));
  const json& endpoints = At(object, "endpoints");
  slice->is_ipv6 = type == "IPv6";
  if (type == "FQDN" || endpoints.is_null()) return absl::OkStatus();
  if (!endpoints.is_array() || (type != "IPv4" && !slice->is_ipv6)) {
    return Malformed("an EndpointSlice");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<int> port, PortOf(object));
  if (!port.has_value()) return absl::OkStatus();
  for (const json& endpoint : endpoints) {
    if (!Counts(endpoint)) continue;
    const json& addresses = At(endpoint, "addresses");
    if (!addresses.is_array() || addresses.empty()) {
      return Malformed("an endpoint with an address");
    }
    const std::string host = Text(addresses.front());
    if (!IsAddress(slice->is_ipv6 ? AF_INET6 : AF_INET, host)) {
      return Malformed("an endpoint with an address of its slice's type");
    }
    const std::string address = slice->is_ipv6
                                    ? absl::StrCat("[", host, "]:", *port)
                                    : absl::StrCat(host, ":", *port);
    const std::string uid = Text(At(At(endpoint, "targetRef"), "uid"));
    slice->endpoints.emplace(uid.empty() ? address : uid, address);
  }
  return absl::OkStatus();
}

absl::Status EndpointSlices::TakeList(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const json list, ParseStrictJson(text, "a list"));
  const json& items = At(list, "items");
  if (!items.is_array() && !items.is_null()) return Malformed("a list");
  LOCKSTEP_ASSIGN_OR_RETURN(std::string version, VersionOf(list));
  Named slices;
  for (const json& item : items) {
    LOCKSTEP_RETURN_IF_ERROR(
        Parse(item, &slices[Text(At(At(item, "metadata"), "name"))]));
  }
  version_ = std::move(version);
  slices_ = std::move(slices);
  return absl::OkStatus();
}

absl::Status EndpointSlices::TakeEvent(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const json event,
                            ParseStrictJson(text, "an event"));
  const std::string type = Text(At(event, "type"));
  const json& object = At(event, "object");
  if (type == "ERROR") return ErrorOf(object);
  LOCKSTEP_ASSIGN_OR_RETURN(std::string version, VersionOf(object));
  const std::string name = Text(At(At(object, "metadata"), "name"));
  if (type == "ADDED" || type == "MODIFIED") {
    Slice slice;
    LOCKSTEP_RETURN_IF_ERROR(Parse(object, &slice));
    slices_[name] = std::move(slice);
  } else if (type == "DELETED") {
    slices_.erase(name);
  } else if (type != "BOOKMARK") {
    return Malformed("an event of a type that there is");
  }
  version_ = std::move(version);
  return absl::OkStatus();
}

std::vector<std::string> EndpointSlices::Addresses() const {
  Addressed all;
  for (const bool is_ipv6 : {false, true}) {
    for (const auto& [name, slice] : slices_) {
      if (slice.is_ipv6 != is_ipv6) continue;
      all.insert(slice.endpoints.begin(), slice.endpoints.end());
    }
  }
  std::vector<std::string> addresses;
  for (auto& [pod, address] : all) addresses.push_back(std::move(address));
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()),
                  addresses.end());
  return addresses;
}

}  // namespace lockstep
