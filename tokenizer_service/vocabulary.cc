#include "tokenizer_service/vocabulary.h"

#include <absl/strings/str_cat.h>

#include "third_party/text/tokens_digest.h"

namespace lockstep {

Vocabulary::Vocabulary(Join join, uint32_t strip_leading_spaces)
    : join_(join), strip_leading_spaces_(strip_leading_spaces) {}

void Vocabulary::Add(absl::string_view bytes, Kind kind, bool special) {
  bytes_.append(bytes.data(), bytes.size());
  entries_.push_back({bytes_.size(), kind, special});
}

Vocabulary::Token Vocabulary::token(uint32_t id) const {
  const Entry& entry = entries_[id];
  const uint64_t begin = id == 0 ? 0 : entries_[id - 1].end;
  return {absl::string_view(bytes_).substr(begin, entry.end - begin),
          entry.kind, entry.special};
}

Digest Vocabulary::MakeDigest() const {
  DigestBuilder builder;
  builder.Add(static_cast<uint64_t>(join_));
  builder.Add(uint64_t{strip_leading_spaces_});
  for (const Entry& entry : entries_) {
    builder.Add(entry.end);
    builder.Add(uint64_t{static_cast<uint8_t>(entry.kind)} << 1 |
                uint64_t{entry.special});
  }
  builder.Add(bytes_);
  return builder.Finish();
}

Digest Vocabulary::MakeTokensDigest() const {
  TokensDigest digest;
  for (uint32_t id = 0; id < size(); ++id) {
    digest.Add(token(id).bytes, token(id).kind != Kind::kNone);
  }
  return digest.Finish();
}

absl::Status Vocabulary::Check(absl::Span<const uint32_t> ids) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("token_ids[", i, "] is ", ids[i],
                       ", outside the vocabulary of ", size(), " ids."));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep
