#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <vector>

#include "frontend/access/api_key.h"

namespace lockstep {

inline constexpr size_t kMostApiKeys = 4096;

// The keys of a file: one a line, a name, the key or its SHA-256, limits in any
// order. Empty lines and what follows a # are left out.
//
//   alice   5f0c9a3e71d24b86                    requests_per_minute=60
//   batch   sha256:ba7816bf8f01cfea414140de…    concurrent_requests=4
//
// INVALID_ARGUMENT names the line, and never quotes a key. A pure function;
// docs/security.md has the format for users.
absl::StatusOr<std::vector<ApiKey>> ParseApiKeys(absl::string_view text);

}  // namespace lockstep
