#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <nlohmann/json.hpp>

#include "frontend/generation/spec.h"
#include "frontend/openai/unknown_fields.h"

namespace lockstep::openai {

// The tools of a chat, or its functions, as they were called before; `body` is
// what `request` was parsed from. Those that the model is to know nothing of,
// as tool_choice is "none", are left out. INVALID_ARGUMENT names the field.
absl::Status ReadTools(const nlohmann::json& request, absl::string_view body,
                       UnknownFields* unknown, ChatPrompt* chat);

}  // namespace lockstep::openai
