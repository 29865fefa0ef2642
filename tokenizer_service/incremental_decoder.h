#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/utf8.h"
#include "tokenizer_service/tokenizer.h"
#include "tokenizer_service/vocabulary.h"

namespace lockstep {

// Decodes a growing list of ids into pieces of whole characters.
//
//   IncrementalDecoder decoder(&tokenizer, /*skip_special_tokens=*/true);
//   LOCKSTEP_ASSIGN_OR_RETURN(std::string piece, decoder.Add(ids));
//   …
//   LOCKSTEP_ASSIGN_OR_RETURN(std::string rest, decoder.Finish());
//
// The pieces concatenate to Decode of all ids, byte for byte, for every stream
// of ids. Held back is only what later ids can still change: the start of a
// character, and, with Join::kByteFallback, a run of byte tokens, as one bad
// byte makes all of the run U+FFFD. Work and memory are those of the new ids
// and of what is held back; nothing is decoded twice. One stream, one object,
// one thread at a time.
class IncrementalDecoder {
 public:
  // `tokenizer` must outlive this. `shown`: special tokens that are not
  // skipped, a few.
  IncrementalDecoder(const Tokenizer* tokenizer, bool skip_special_tokens,
                     absl::Span<const uint32_t> shown = {});
  // The same, for implementations of Tokenizer.
  IncrementalDecoder(const Vocabulary* vocabulary, bool skip_special_tokens,
                     absl::Span<const uint32_t> shown = {});

  // INVALID_ARGUMENT for an id outside the vocabulary; nothing is added then.
  absl::StatusOr<std::string> Add(absl::Span<const uint32_t> ids);

  // What was held back. No Add after it.
  absl::StatusOr<std::string> Finish();

 private:
  bool Skips(uint32_t id, const Vocabulary::Token& token) const;
  void AddToken(const Vocabulary::Token& token, std::string& text);
  void EndByteRun(std::string& text);
  // Drops the leading spaces that are still to be dropped.
  std::string Strip(std::string text);

  const Vocabulary* const vocabulary_;
  const bool skip_special_tokens_;
  const std::vector<uint32_t> shown_;
  uint32_t spaces_to_strip_;
  Utf8Repairer repairer_;  // of Join::kByteLevel
  std::string byte_run_;   // of Join::kByteFallback
};

}  // namespace lockstep
