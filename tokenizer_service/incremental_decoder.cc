#include "tokenizer_service/incremental_decoder.h"

#include <algorithm>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {

IncrementalDecoder::IncrementalDecoder(const Tokenizer* tokenizer,
                                       bool skip_special_tokens,
                                       absl::Span<const uint32_t> shown)
    : IncrementalDecoder(&tokenizer->vocabulary(), skip_special_tokens, shown) {
}

IncrementalDecoder::IncrementalDecoder(const Vocabulary* vocabulary,
                                       bool skip_special_tokens,
                                       absl::Span<const uint32_t> shown)
    : vocabulary_(vocabulary),
      skip_special_tokens_(skip_special_tokens),
      shown_(shown.begin(), shown.end()),
      spaces_to_strip_(vocabulary->strip_leading_spaces()) {}

absl::StatusOr<std::string> IncrementalDecoder::Add(
    absl::Span<const uint32_t> ids) {
  LOCKSTEP_RETURN_IF_ERROR(vocabulary_->Check(ids));
  std::string text;
  for (const uint32_t id : ids) {
    const Vocabulary::Token token = vocabulary_->token(id);
    if (!Skips(id, token)) AddToken(token, text);
  }
  return Strip(std::move(text));
}

absl::StatusOr<std::string> IncrementalDecoder::Finish() {
  std::string text;
  repairer_.Finish(text);
  EndByteRun(text);
  return Strip(std::move(text));
}

bool IncrementalDecoder::Skips(uint32_t id,
                               const Vocabulary::Token& token) const {
  if (token.kind == Vocabulary::Kind::kNone) return true;
  return token.special && skip_special_tokens_ &&
         std::find(shown_.begin(), shown_.end(), id) == shown_.end();
}

void IncrementalDecoder::AddToken(const Vocabulary::Token& token,
                                  std::string& text) {
  if (vocabulary_->join() == Vocabulary::Join::kByteLevel) {
    repairer_.Add(token.bytes, text);
    return;
  }
  if (token.kind == Vocabulary::Kind::kByte) {
    byte_run_.append(token.bytes.data(), token.bytes.size());
    return;
  }
  EndByteRun(text);
  text.append(token.bytes.data(), token.bytes.size());
}

void IncrementalDecoder::EndByteRun(std::string& text) {
  if (!FindInvalidUtf8(byte_run_)) {
    text.append(byte_run_);
  } else {
    for (size_t i = 0; i < byte_run_.size(); ++i) {
      text.append(kReplacementCharacter.data(), kReplacementCharacter.size());
    }
  }
  byte_run_.clear();
}

std::string IncrementalDecoder::Strip(std::string text) {
  const size_t most = std::min<size_t>(spaces_to_strip_, text.size());
  const size_t spaces = std::min(text.find_first_not_of(' '), most);
  // Whatever else comes first ends the start.
  spaces_to_strip_ = spaces == text.size() ? spaces_to_strip_ - spaces : 0;
  return text.substr(spaces);
}

}  // namespace lockstep
