#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

namespace lockstep {

// What a client's program can act on, beside the code and the sentence of an
// error: the reason, a word of OpenAI's API, and the field at fault. They
// travel in the Status, within this process.
//
//   return WithReason(absl::InvalidArgumentError("…"), kContextLengthExceeded);
//   …
//   if (ReasonOf(status) == kContextLengthExceeded) …

inline constexpr absl::string_view kContextLengthExceeded =
    "context_length_exceeded";
inline constexpr absl::string_view kModelNotFound = "model_not_found";
inline constexpr absl::string_view kUnsupportedParameter =
    "unsupported_parameter";

absl::Status WithReason(absl::Status status, absl::string_view reason);
absl::Status WithField(absl::Status status, absl::string_view field);

// Empty where there is none.
std::string ReasonOf(const absl::Status& status);
std::string FieldOf(const absl::Status& status);

}  // namespace lockstep
