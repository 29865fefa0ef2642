#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <nlohmann/json.hpp>

namespace lockstep::openai {

// A request's body as a JSON object. Besides what ParseStrictJson refuses,
// there is a bound on its values, as each takes memory, however short its text:
// kMaxDecodedIds token ids and a request around them.
absl::StatusOr<nlohmann::json> ParseBody(absl::string_view body);

}  // namespace lockstep::openai
