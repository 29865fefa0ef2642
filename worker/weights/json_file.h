#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

// The JSON of a file that someone else wrote; see ParseStrictJson. NOT_FOUND
// where there is no such file.
absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path);

}  // namespace lockstep
