#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// Decodes a growing list of ids into pieces of whole characters.
//
//   IncrementalDecoder decoder(&tokenizer, /*skip_special_tokens=*/true);
//   LOCKSTEP_ASSIGN_OR_RETURN(std::string piece, decoder.Add(ids));
//   …
//   LOCKSTEP_ASSIGN_OR_RETURN(std::string rest, decoder.Finish());
//
// The pieces concatenate to Decode of all ids, byte for byte, for every stream
// of ids. A piece is held back while it could be the start of a character that
// later ids complete. One stream, one object, one thread at a time. Work per
// token does not grow with the stream.
class IncrementalDecoder {
 public:
  // `tokenizer` must outlive this.
  IncrementalDecoder(const Tokenizer* tokenizer, bool skip_special_tokens);

  absl::StatusOr<std::string> Add(absl::Span<const uint32_t> ids);

  // What was held back. No Add after it.
  absl::StatusOr<std::string> Finish();

 private:
  const Tokenizer* const tokenizer_;
  const bool skip_special_tokens_;
  // The window that is still decoded anew: ids_[0, emitted_) are context whose
  // text went out, the rest waits.
  std::vector<uint32_t> ids_;
  size_t emitted_ = 0;
};

}  // namespace lockstep
