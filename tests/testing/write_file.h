#pragma once

#include <absl/strings/string_view.h>

#include <string>

namespace lockstep::testing {

// Writes a file, making the folders above it; ends the test where that fails.
void WriteFile(const std::string& path, absl::string_view content);

}  // namespace lockstep::testing
