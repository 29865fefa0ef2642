#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// The tokenizer of a Hugging Face folder. tokenizer.json is needed; the others
// are taken where they are:
//   tokenizer_config.json    special tokens (text or {"content": text}) and
//                            chat_template (text or [{name, template}], of
//                            which "default")
//   chat_template.jinja      goes before the one above
//   generation_config.json   eos_token_id (one or a list); config.json where
//                            there is none
//   config.json              vocab_size
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizerFolder(
    const std::string& folder);

}  // namespace lockstep
