#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstddef>

// Marks, such as "<tool_call>", in a text that comes in pieces, and the white
// space around them. What is decided of a text stays decided whatever follows,
// so the cut into pieces makes no difference.
namespace lockstep {

// The white space before a mark belongs to it, up to so many bytes; so no more
// than that is held back.
inline constexpr size_t kMaxSpaceBytes = 64;

// The most that is held back where it can not be told yet whether it is a call;
// what is longer is content. It is read again each time that more has come, so
// this bounds that work too.
inline constexpr size_t kMaxHeldBytes = 16 << 10;

struct MarkMatch {
  size_t at = absl::string_view::npos;  // npos: there is none
  absl::string_view mark = {};
};

// The first mark in `text`. No mark begins another.
MarkMatch FindMark(absl::string_view text,
                   absl::Span<const absl::string_view> marks);

// Where the end of `text` begins that more text could make a mark, together
// with the white space before it; the size of `text` where nothing could.
size_t UndecidedFrom(absl::string_view text,
                     absl::Span<const absl::string_view> marks);

// Where the white space begins that ends at `end`.
size_t SpaceBefore(absl::string_view text, size_t end);

bool IsSpace(char c);

// Where the white space ends that begins at `at`.
size_t SkipSpace(absl::string_view text, size_t at);

// Whether `text` could become one that starts with `mark`.
bool CouldBecome(absl::string_view text, absl::string_view mark);

}  // namespace lockstep
