#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tokenizer_service/caching/segment_cache.h"
#include "tokenizer_service/caching/text_cuts.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// Another tokenizer, and the ids of what it has encoded: the earlier turns of a
// chat, which come again with each new one, and a system prompt that many chats
// share are encoded once. The ids are the other's own, as a text is only cut
// where that makes no difference (TextCuts).
//
//   CachingTokenizer tokenizer(std::move(other), 64 << 20);
//   tokenizer.Encode(rendered_chat, /*add_special_tokens=*/false);
//
// As every Tokenizer: any thread, several at once.
class CachingTokenizer : public Tokenizer {
 public:
  // `max_bytes`: of texts and ids that are kept. Takes as long as TextCuts.
  CachingTokenizer(std::unique_ptr<Tokenizer> tokenizer, size_t max_bytes);

  // What is to get special tokens is not a chat, and is not cut.
  absl::StatusOr<std::vector<uint32_t>> Encode(
      absl::string_view text, bool add_special_tokens) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const uint32_t> ids,
                                     bool skip_special_tokens) const override {
    return tokenizer_->Decode(ids, skip_special_tokens);
  }
  absl::StatusOr<std::string> RenderChat(
      absl::string_view context_json) const override {
    return tokenizer_->RenderChat(context_json);
  }
  const TokenizerInfo& info() const override { return tokenizer_->info(); }
  const Vocabulary& vocabulary() const override {
    return tokenizer_->vocabulary();
  }

  const TextCuts& cuts() const { return cuts_; }

  // Of texts that were looked up, in bytes; each counts up.
  uint64_t known_bytes() const { return known_bytes_.load(); }
  uint64_t encoded_bytes() const { return encoded_bytes_.load(); }

 private:
  const std::unique_ptr<Tokenizer> tokenizer_;
  const TextCuts cuts_;
  mutable SegmentCache cache_;
  mutable std::atomic<uint64_t> known_bytes_ = 0;
  mutable std::atomic<uint64_t> encoded_bytes_ = 0;
};

}  // namespace lockstep
