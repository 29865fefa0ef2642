#include "frontend/output_parsing/marks.h"

#include <absl/strings/match.h>

#include <algorithm>

namespace lockstep {

MarkMatch FindMark(absl::string_view text,
                   absl::Span<const absl::string_view> marks) {
  MarkMatch first;
  for (const absl::string_view mark : marks) {
    const size_t at = text.find(mark);
    if (at < first.at) first = {at, mark};
  }
  return first;
}

size_t UndecidedFrom(absl::string_view text,
                     absl::Span<const absl::string_view> marks) {
  size_t from = text.size();
  for (const absl::string_view mark : marks) {
    const size_t most = std::min(mark.size() - 1, text.size());
    for (size_t size = most; size > 0; --size) {
      if (absl::EndsWith(text, mark.substr(0, size))) {
        from = std::min(from, text.size() - size);
        break;
      }
    }
  }
  return marks.empty() ? from : SpaceBefore(text, from);
}

size_t SpaceBefore(absl::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && end - begin < kMaxSpaceBytes &&
         IsSpace(text[begin - 1])) {
    --begin;
  }
  return begin;
}

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

size_t SkipSpace(absl::string_view text, size_t at) {
  while (at < text.size() && IsSpace(text[at])) ++at;
  return at;
}

bool CouldBecome(absl::string_view text, absl::string_view mark) {
  return absl::StartsWith(text, mark) || absl::StartsWith(mark, text);
}

}  // namespace lockstep
