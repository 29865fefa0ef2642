#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

// Parses JSON that someone else wrote, more strictly than nlohmann::json: a key
// that is there twice and nesting over 32 levels are errors too, so that no two
// readers can understand it differently and what recurses over it is safe.
// INVALID_ARGUMENT names `name` and the place.
absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text,
                                               const std::string& name);

// The JSON of a file, whose path is its name. NOT_FOUND where there is none.
absl::StatusOr<nlohmann::json> ReadStrictJson(const std::string& path);

// The object of a file, an empty one where there is no file. INVALID_ARGUMENT
// where it holds something else.
absl::StatusOr<nlohmann::json> ReadStrictJsonObject(const std::string& path);

}  // namespace lockstep
