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

// The same, with the keys of its objects in the order in which they came, as
// chat templates and grammars show them. Its time grows with the text alone;
// that of nlohmann::ordered_json's own parser grows with the square of an
// object's keys, so no text of a client's may come to it.
absl::StatusOr<nlohmann::ordered_json> ParseOrderedJson(
    absl::string_view text, const std::string& name);

// One member of an object in a text that ParseStrictJson takes, as
// ParseOrderedJson has it. Null where there is none. The others are not kept.
absl::StatusOr<nlohmann::ordered_json> ParseOrderedMember(
    absl::string_view text, absl::string_view member, const std::string& name);

// The JSON of a file, whose path is its name. NOT_FOUND where there is none.
absl::StatusOr<nlohmann::json> ReadStrictJson(const std::string& path);

// The object of a file, an empty one where there is no file. INVALID_ARGUMENT
// where it holds something else.
absl::StatusOr<nlohmann::json> ReadStrictJsonObject(const std::string& path);

}  // namespace lockstep
