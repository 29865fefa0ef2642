#pragma once

#include <absl/status/status.h>

#include <nlohmann/json_fwd.hpp>

namespace lockstep {

// What a Kubernetes API server says instead of what it was asked for: its code,
// an HTTP one, and the message of a Status object, shortened; `object` may be
// anything.
//
//   401 UNAUTHENTICATED   404 NOT_FOUND      429, 5xx UNAVAILABLE
//   403 PERMISSION_DENIED 410 OUT_OF_RANGE   others INVALID_ARGUMENT
absl::Status FromApiStatus(int code, const nlohmann::json& object);

}  // namespace lockstep
