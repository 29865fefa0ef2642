#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/digest.h"

namespace lockstep {

// What each token id stands for and how a row of them becomes text: all that
// decoding needs, so that a stream is decoded id by id, in this process,
// whoever encodes.
//
//   Vocabulary vocabulary(Vocabulary::Join::kByteLevel);
//   vocabulary.Add("Hello", Vocabulary::Kind::kText);
//   vocabulary.Add("<|end|>", Vocabulary::Kind::kText, /*special=*/true);
//
// Filled once, immutable afterwards; then any thread.
class Vocabulary {
 public:
  // The two decoders that language models use (Hugging Face tokenizers,
  // decoders/byte_level.rs and byte_fallback.rs).
  enum class Join : uint8_t {
    // The bytes of all tokens are one stream; each maximal part of it that is
    // no UTF-8 is one U+FFFD.
    kByteLevel,
    // Tokens are text, but for byte tokens. A run of byte tokens is a text if
    // all of it is UTF-8, else one U+FFFD for each of its bytes.
    kByteFallback,
  };

  enum class Kind : uint8_t {
    kNone,  // an id without a token: decodes as if it were not there
    kText,
    kByte,  // of kByteFallback
  };

  struct Token {
    absl::string_view bytes;
    Kind kind;
    bool special;  // left out by skip_special_tokens
  };

  // `strip_leading_spaces`: so many spaces at the very start are dropped.
  explicit Vocabulary(Join join, uint32_t strip_leading_spaces = 0);

  // The token of the next id.
  void Add(absl::string_view bytes, Kind kind, bool special = false);

  uint32_t size() const { return entries_.size(); }
  Join join() const { return join_; }
  uint32_t strip_leading_spaces() const { return strip_leading_spaces_; }

  // REQUIRES: id < size(). The view lives as long as this.
  Token token(uint32_t id) const;

  // Of all that is in it, the same on every machine. Takes as long as it is.
  Digest MakeDigest() const;
  // Of what the ids stand for alone: as a worker's files have it.
  Digest MakeTokensDigest() const;

  // INVALID_ARGUMENT names the index, the id and the limit.
  absl::Status Check(absl::Span<const uint32_t> ids) const;

 private:
  struct Entry {
    uint64_t end;  // in bytes_; it starts where the one before ends
    Kind kind;
    bool special;
  };

  const Join join_;
  const uint32_t strip_leading_spaces_;
  std::string bytes_;
  std::vector<Entry> entries_;
};

}  // namespace lockstep
