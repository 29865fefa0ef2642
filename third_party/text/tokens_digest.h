#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>

#include "common/digest.h"

namespace lockstep {

// What a model's token ids stand for: the same from a tokenizer, from the files
// of a worker and, of one model, from either's format. So a gateway finds the
// worker whose ids mean other texts.
//
//   TokensDigest digest;
//   for (…each id, from 0…) digest.Add(bytes, is_token);
//   return digest.Finish();
//
// Ids without a token, which fill a vocabulary up, count for nothing; nor does
// which tokens are special, since the formats differ in that. Not thread-safe.
class TokensDigest {
 public:
  // Of the next id.
  void Add(absl::string_view bytes, bool is_token);

  Digest Finish() { return builder_.Finish(); }

 private:
  DigestBuilder builder_;
  uint64_t id_ = 0;
};

}  // namespace lockstep
