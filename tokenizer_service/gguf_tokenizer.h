#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>

#include "common/gguf_file.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// The tokenizer that a GGUF file holds (ggml's docs/gguf.md, "Tokenizer"):
// tokenizer.ggml.model "gpt2", with one of the splitting rules of
// gguf_splitting.h, "llama", SentencePiece's BPE, or "gemma4", which has its
// pieces and lists their merges. It is turned into the tokenizer.json that
// Hugging Face has for the same model, so every id is the same.
//
// INVALID_ARGUMENT names the file, the key, and what was expected.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenGgufTokenizer(
    const std::string& path,
    const std::optional<std::string>& chat_template = std::nullopt);

absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerFromGguf(
    const GgufFile& file,
    const std::optional<std::string>& chat_template = std::nullopt);

}  // namespace lockstep
