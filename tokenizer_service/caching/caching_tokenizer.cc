#include "tokenizer_service/caching/caching_tokenizer.h"

#include <utility>

#include "common/status_macros.h"

namespace lockstep {

CachingTokenizer::CachingTokenizer(std::unique_ptr<Tokenizer> tokenizer,
                                   size_t max_bytes)
    : tokenizer_(std::move(tokenizer)), cuts_(*tokenizer_), cache_(max_bytes) {}

absl::StatusOr<std::vector<uint32_t>> CachingTokenizer::Encode(
    absl::string_view text, bool add_special_tokens) const {
  // A refusal of a text that is too long is to name its length.
  if (add_special_tokens || cuts_.tokens().empty() ||
      text.size() > kMaxTextBytes) {
    return tokenizer_->Encode(text, add_special_tokens);
  }
  std::vector<uint32_t> ids;
  for (const absl::string_view part : cuts_.Split(text)) {
    if (cache_.Append(part, &ids)) {
      known_bytes_ += part.size();
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<uint32_t> encoded,
                              tokenizer_->Encode(part, false));
    encoded_bytes_ += part.size();
    ids.insert(ids.end(), encoded.begin(), encoded.end());
    cache_.Insert(part, encoded);
  }
  return ids;
}

}  // namespace lockstep
