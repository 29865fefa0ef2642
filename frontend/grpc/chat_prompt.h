#pragma once

#include <absl/status/statusor.h>

#include "frontend/generation/spec.h"
#include "proto/inference.pb.h"

namespace lockstep {

// A chat in the pipeline's words. INVALID_ARGUMENT names what is not the JSON
// it must be, a tool's name that is none, or fields that contradict each other.
// Takes as long as the chat is long.
absl::StatusOr<ChatPrompt> ToChatPrompt(const v1::ChatPrompt& chat);

}  // namespace lockstep
