#include "tests/testing/grammar/tiny_token_bytes.h"

#include "tests/testing/tiny_tokenizer.h"

namespace lockstep::testing {

TokenBytes MakeTinyTokenBytes() {
  TokenBytes result;
  const TinyTokenizer tokenizer = MakeTinyTokenizer();
  for (size_t id = 0; id < tokenizer.tokens.size(); ++id) {
    result.Add(BytesOfToken(tokenizer.tokens[id]),
               /*is_special=*/id < TinyTokenizer::kNumSpecial);
  }
  return result;
}

std::vector<uint32_t> TinyIds(absl::string_view text) {
  std::vector<uint32_t> ids;
  for (const char c : text) {
    ids.push_back(TinyTokenizer::kNumSpecial + static_cast<uint8_t>(c));
  }
  return ids;
}

std::string TinyText(const std::vector<uint32_t>& ids) {
  static const TinyTokenizer kTokenizer = MakeTinyTokenizer();
  std::string text;
  for (const uint32_t id : ids) {
    if (id < TinyTokenizer::kNumSpecial) break;
    text += BytesOfToken(kTokenizer.tokens[id]);
  }
  return text;
}

}  // namespace lockstep::testing
