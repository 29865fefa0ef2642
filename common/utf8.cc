#include "common/utf8.h"

namespace lockstep {
namespace {

// A lead byte: how long its character is and what the second byte may be.
struct Lead {
  size_t size;  // 0: no lead byte
  uint8_t lowest;
  uint8_t highest;
};

constexpr uint8_t kLowest = 0x80;
constexpr uint8_t kHighest = 0xbf;

// Unicode 15, table 3-7.
Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xc2) return {0, 0, 0};
  if (byte < 0xe0) return {2, kLowest, kHighest};
  if (byte == 0xe0) return {3, 0xa0, kHighest};
  if (byte == 0xed) return {3, kLowest, 0x9f};
  if (byte < 0xf0) return {3, kLowest, kHighest};
  if (byte == 0xf0) return {4, 0x90, kHighest};
  if (byte < 0xf4) return {4, kLowest, kHighest};
  if (byte == 0xf4) return {4, kLowest, 0x8f};
  return {0, 0, 0};
}

}  // namespace

std::optional<size_t> FindInvalidUtf8(absl::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Lead lead = LeadOf(text[at]);
    if (lead.size == 0 || lead.size > text.size() - at) return at;
    for (size_t i = 1; i < lead.size; ++i) {
      const uint8_t byte = text[at + i];
      const uint8_t lowest = i == 1 ? lead.lowest : kLowest;
      const uint8_t highest = i == 1 ? lead.highest : kHighest;
      if (byte < lowest || byte > highest) return at;
    }
    at += lead.size;
  }
  return std::nullopt;
}

bool Utf8Repairer::Continues(uint8_t byte) const {
  return byte >= lowest_ && byte <= highest_;
}

void Utf8Repairer::Start(uint8_t byte, std::string& text) {
  const Lead lead = LeadOf(byte);
  if (lead.size == 0) {
    text.append(kReplacementCharacter.data(), kReplacementCharacter.size());
  } else if (lead.size == 1) {
    text.push_back(byte);
  } else {
    held_.assign(1, byte);
    size_ = lead.size;
    lowest_ = lead.lowest;
    highest_ = lead.highest;
  }
}

void Utf8Repairer::Add(absl::string_view bytes, std::string& text) {
  for (const char c : bytes) {
    const uint8_t byte = c;
    if (!held_.empty() && !Continues(byte)) Finish(text);
    if (held_.empty()) {
      Start(byte, text);
      continue;
    }
    held_.push_back(byte);
    lowest_ = kLowest;
    highest_ = kHighest;
    if (held_.size() < size_) continue;
    text.append(held_);
    held_.clear();
  }
}

void Utf8Repairer::Finish(std::string& text) {
  if (held_.empty()) return;
  text.append(kReplacementCharacter.data(), kReplacementCharacter.size());
  held_.clear();
}

std::string RepairUtf8(absl::string_view bytes) {
  std::string text;
  Utf8Repairer repairer;
  repairer.Add(bytes, text);
  repairer.Finish(text);
  return text;
}

}  // namespace lockstep
