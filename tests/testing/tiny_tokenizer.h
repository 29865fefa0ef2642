#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep::testing {

// A byte-level BPE tokenizer of 512 entries with a ChatML template, for models
// made by tests: ids 0 to 2 are <|endoftext|> (padding), <|im_start|> (begin)
// and <|im_end|> (end), then come the 256 bytes, then merges of a space with a
// letter and of two letters.
struct TinyTokenizer {
  static constexpr int kVocabSize = 512;
  static constexpr int kNumSpecial = 3;

  std::vector<std::string> tokens;  // by id
  std::vector<std::pair<std::string, std::string>> merges;
  std::string chat_template;
};

TinyTokenizer MakeTinyTokenizer();

}  // namespace lockstep::testing
