#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/digest.h"

namespace lockstep {

// The bytes behind each token id, as grammars see them and as text is decoded
// from them.
struct TokenBytes {
  std::string bytes;           // of all tokens, in the order of their ids
  std::vector<uint32_t> ends;  // by id: where its bytes end
  std::vector<uint8_t> kinds;  // by id: see LtVocabulary

  // The text of the next id; a special one is never a part of an answer's text.
  void Add(absl::string_view text, bool is_special);

  // Makes the ids those below `size`; new ones have no bytes.
  void Resize(size_t size);

  // Of all of it, in hexadecimal; the same on every machine.
  std::string MakeDigest() const;
  // Of what the ids stand for alone: as a tokenizer has it.
  Digest MakeTokensDigest() const;
};

// Of a model: from the tokenizer.json of a Hugging Face folder, or from a .gguf
// file whose tokens are byte-level or SentencePiece's. NOT_FOUND where it has
// none, INVALID_ARGUMENT where they are of another kind; either names the file.
absl::StatusOr<TokenBytes> ReadTokenBytes(const std::string& model);

// The bytes that a token of a byte-level vocabulary (GPT-2's) stands for: of
// each character its byte; of one that has a character besides, its own.
std::string BytesOfToken(absl::string_view token);

}  // namespace lockstep
