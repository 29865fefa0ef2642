#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// The tokenizer of a Hugging Face folder. tokenizer.json is needed; the others
// are taken where they are:
//   tokenizer_config.json    special tokens (text or {"content": text}) and
//                            chat_template (text or [{name, template}], of
//                            which "default")
//   chat_template.jinja      goes before the one above
//   generation_config.json   eos_token_id (one or a list)
//   config.json              eos_token_id, besides; vocab_size
// Where they contradict each other, `notes` gets a sentence each.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizerFolder(
    const std::string& folder,
    const std::optional<std::string>& chat_template = std::nullopt,
    std::vector<std::string>* notes = nullptr);

}  // namespace lockstep
