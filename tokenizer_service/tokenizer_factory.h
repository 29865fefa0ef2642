#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// Opens the tokenizer of a model, in this process: of a Hugging Face folder or
// of a GGUF file, as `path` is the one or the other.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto tokenizer, OpenTokenizer("model.gguf"));
//
// The error is one sentence that names the file, and what was expected of it.
// Where the model's files contradict each other, `notes` gets a sentence each.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(
    const std::string& path,
    const std::optional<std::string>& chat_template = std::nullopt,
    std::vector<std::string>* notes = nullptr);

}  // namespace lockstep
