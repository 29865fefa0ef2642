#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

#include "frontend/generation/chat_format.h"
#include "frontend/generation/spec.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// A chat as the model's template writes it. `field` is what the client calls
// the chat; INVALID_ARGUMENT begins with it. Takes as long as the chat is long.
absl::StatusOr<std::string> RenderChat(absl::string_view field,
                                       const ChatPrompt& chat,
                                       const ChatFormat& format,
                                       const Tokenizer& tokenizer);

}  // namespace lockstep
