#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace lockstep {

// Digest of this process's binary, so that ranks of different builds do not
// form a group.
absl::StatusOr<std::string> BuildId();

}  // namespace lockstep
