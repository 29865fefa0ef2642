#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>

#include "frontend/generation/spec.h"
#include "frontend/openai/field_reader.h"
#include "frontend/openai/unknown_fields.h"

namespace lockstep::openai {

// The messages of a chat with the fields that say how they are rendered:
// messages, add_generation_prompt, continue_final_message,
// chat_template_kwargs, documents, add_special_tokens. INVALID_ARGUMENT names
// the message.
absl::StatusOr<PromptSpec> ReadChat(const nlohmann::json& request,
                                    UnknownFields* unknown);

}  // namespace lockstep::openai
