#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <nlohmann/json.hpp>

namespace lockstep::openai {

// A request's body as a JSON object. Besides what ParseStrictJson refuses,
// there is a bound on its values, as each takes memory, however short its text:
// kMaxDecodedIds token ids and a request around them.
absl::StatusOr<nlohmann::json> ParseBody(absl::string_view body);

// One member of a body that ParseBody took, with the keys of its objects in the
// order in which the client wrote them: chat templates show them so. Null where
// there is none. REQUIRES: ParseBody took it.
nlohmann::ordered_json OrderedMember(absl::string_view body,
                                     absl::string_view name);

}  // namespace lockstep::openai
