#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <nlohmann/json.hpp>

#include "frontend/generation/spec.h"
#include "frontend/openai/field_reader.h"
#include "frontend/openai/unknown_fields.h"

namespace lockstep::openai {

// The messages of a chat with the fields that say how they are rendered:
// messages, tools, tool_choice, add_generation_prompt, continue_final_message,
// chat_template_kwargs, documents, reasoning_effort, add_special_tokens.
// `body` is what `request` was parsed from. INVALID_ARGUMENT names the message.
absl::StatusOr<PromptSpec> ReadChat(const nlohmann::json& request,
                                    absl::string_view body,
                                    UnknownFields* unknown);

}  // namespace lockstep::openai
