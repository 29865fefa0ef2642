#include "frontend/generation/bad_words.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace lockstep {

absl::Status AddBadWords(absl::Span<const std::string> words,
                         const Tokenizer& tokenizer,
                         v1::SamplingParams* sampling) {
  std::set<std::vector<uint32_t>> known;
  for (size_t i = 0; i < words.size(); ++i) {
    std::vector<std::string> texts = {words[i]};
    const absl::string_view bare = absl::StripLeadingAsciiWhitespace(words[i]);
    if (!bare.empty()) {
      texts = {std::string(bare), absl::StrCat(" ", bare)};
    }
    for (const std::string& text : texts) {
      const auto ids = tokenizer.Encode(text, /*add_special_tokens=*/false);
      if (!ids.ok()) {
        return absl::Status(
            ids.status().code(),
            absl::StrCat("bad_words[", i,
                         "] cannot be encoded: ", ids.status().message()));
      }
      if (ids->empty() || !known.insert(*ids).second) continue;
      sampling->add_bad_words()->mutable_ids()->Add(ids->begin(), ids->end());
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep
