#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "frontend/generation/spec.h"
#include "frontend/generation/stop_matcher.h"
#include "tokenizer_service/incremental_decoder.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// The text of one choice: ids become whole characters, up to a stop string.
//
//   TextStream stream(&tokenizer, spec);
//   LOCKSTEP_ASSIGN_OR_RETURN(TextStream::Piece piece, stream.Add(ids));
//   show(piece.text);                     // of the first piece.num_tokens ids
//   if (stream.stop_string()) stop_the_worker();
//
// Not thread-safe.
class TextStream {
 public:
  struct Piece {
    std::string text;
    // Ids that were used; fewer than given if a stop string ended the text.
    size_t num_tokens = 0;
  };

  // `tokenizer` must outlive this. `shown`: special tokens that are part of the
  // text even where these are skipped.
  TextStream(const Tokenizer* tokenizer, const GenerateSpec& spec,
             absl::Span<const uint32_t> shown = {});

  // Nothing is used once there is a stop_string().
  absl::StatusOr<Piece> Add(absl::Span<const uint32_t> ids);

  // The text that was held back; no Add after it. It can hold a stop string.
  absl::StatusOr<std::string> Finish();

  const std::optional<std::string>& stop_string() const {
    return matcher_.match();
  }
  uint32_t num_tokens() const { return num_tokens_; }

 private:
  absl::StatusOr<std::string> Decode(absl::Span<const uint32_t> ids);

  const uint32_t vocabulary_size_;
  IncrementalDecoder decoder_;
  StopMatcher matcher_;
  uint32_t num_tokens_ = 0;
};

}  // namespace lockstep
