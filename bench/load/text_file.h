#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

namespace lockstep::bench {

// A small file, whole. Errors name the path.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);
absl::Status WriteTextFile(const std::string& path, absl::string_view text);

}  // namespace lockstep::bench
