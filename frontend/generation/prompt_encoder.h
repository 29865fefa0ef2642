#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/generation/chat_format.h"
#include "frontend/generation/spec.h"
#include "tokenizer_service/tokenizer.h"
#include "tokenizer_service/vocabulary.h"

namespace lockstep {

struct EncodedPrompt {
  std::vector<uint32_t> token_ids;
  std::optional<std::string> rendered;  // for a chat, what was encoded
};

// Renders, if it is a chat, and encodes; a chat has one BOS at most. Takes as
// long as the text is long. INVALID_ARGUMENT names the field; a chat that the
// template refuses, or for which there is none, has the template's words.
absl::StatusOr<EncodedPrompt> EncodePrompt(const PromptSpec& prompt,
                                           const ChatFormat& format,
                                           const Tokenizer& tokenizer);

// Each id decoded by itself, with U+FFFD for bytes that are no text; of one
// that only pads the model's vocabulary an empty text.
std::vector<std::string> TokenStrings(const std::vector<uint32_t>& ids,
                                      const Vocabulary& vocabulary);

// Its last `truncation` tokens, and where it has a BOS this in place of the
// first of them.
void Truncate(const Truncation& truncation, const Tokenizer& tokenizer,
              std::vector<uint32_t>* token_ids);

// INVALID_ARGUMENT unless the prompt has at least one token and leaves room in
// the model's context for those asked for, at least one unless it is embedded.
absl::Status CheckPromptTokens(const GenerateSpec& spec, size_t num_tokens);

}  // namespace lockstep
