#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

// U+FFFD, which stands for bytes that are no UTF-8.
inline constexpr absl::string_view kReplacementCharacter = "\xef\xbf\xbd";

// The offset of the first byte that starts no well-formed character (Unicode
// 15, table 3-7): overlong forms, surrogates and cut off characters count.
std::optional<size_t> FindInvalidUtf8(absl::string_view text);

// Turns a stream of bytes into UTF-8, with U+FFFD for every maximal part that
// is ill-formed (Unicode 15, section 3.9, "substitution of maximal subparts").
// However the bytes are cut, the output is the same.
//
//   Utf8Repairer repairer;
//   repairer.Add("\xe2\x82", text);  // nothing yet
//   repairer.Add("\xac", text);      // "€"
//   repairer.Finish(text);
//
// Holds at most three bytes back. One thread at a time.
class Utf8Repairer {
 public:
  // Appends what is decided to `text`.
  void Add(absl::string_view bytes, std::string& text);

  // Appends what was held back; the repairer is as new afterwards.
  void Finish(std::string& text);

 private:
  bool Continues(uint8_t byte) const;
  void Start(uint8_t byte, std::string& text);

  std::string held_;    // the start of a character
  size_t size_ = 0;     // of that character, in bytes
  uint8_t lowest_ = 0;  // what its next byte may be
  uint8_t highest_ = 0;
};

// All of `bytes` at once.
std::string RepairUtf8(absl::string_view bytes);

}  // namespace lockstep
