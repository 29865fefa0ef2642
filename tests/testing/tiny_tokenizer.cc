#include "tests/testing/tiny_tokenizer.h"

#include <absl/strings/string_view.h>

#include <iterator>

namespace lockstep::testing {
namespace {

constexpr const char* kSpecial[] = {"<|endoftext|>", "<|im_start|>",
                                    "<|im_end|>"};
constexpr char kChatTemplate[] =
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
// Merged among themselves, the frequent ones first.
constexpr absl::string_view kLetters = "etaoinshrdlucmfwypvbgkjqxz";

std::string Utf8(int code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6),
          static_cast<char>(0x80 | (code & 0x3f))};
}

// GPT-2's printable stand-in for each byte: itself where it can be seen, else
// the next free character from U+0100 on.
std::vector<std::string> ByteCharacters() {
  std::vector<std::string> characters;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte > ' ' && byte < 0x7f) || (byte >= 0xa1 && byte != 0xad);
    characters.push_back(Utf8(printable ? byte : next++));
  }
  return characters;
}

}  // namespace

TinyTokenizer MakeTinyTokenizer() {
  TinyTokenizer tokenizer;
  tokenizer.chat_template = kChatTemplate;
  tokenizer.tokens.assign(std::begin(kSpecial), std::end(kSpecial));
  const std::vector<std::string> bytes = ByteCharacters();
  tokenizer.tokens.insert(tokenizer.tokens.end(), bytes.begin(), bytes.end());

  const std::string space = bytes[' '];
  const auto merge = [&tokenizer](const std::string& left, char right) {
    if (tokenizer.tokens.size() == TinyTokenizer::kVocabSize) return;
    tokenizer.merges.emplace_back(left, std::string(1, right));
    tokenizer.tokens.push_back(left + right);
  };
  for (const char letter : kLetters) merge(space, letter);
  for (const char left : kLetters) {
    for (const char right : kLetters) merge(std::string(1, left), right);
  }
  return tokenizer;
}

}  // namespace lockstep::testing
