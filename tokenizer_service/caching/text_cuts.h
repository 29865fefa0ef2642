#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// Where a text can be cut so that the ids of its parts, one after the other,
// are its ids: behind special tokens, as a tokenizer looks for those first and
// encodes what is between them by itself.
//
//   const TextCuts cuts(tokenizer);
//   for (absl::string_view part : cuts.Split(text)) …;
//
// Not behind all of them. A token may be a part of another, take spaces beside
// it along, or be told from the text by what comes before; and what stands at
// the beginning of a text may be encoded in another way than in its midst. So a
// token counts if the chat template writes it, if no other token has it as a
// part, and if the tokenizer, asked, gives the same ids with and without the
// cut. Without a chat template there are none.
//
// Immutable; any thread.
class TextCuts {
 public:
  // Asks the tokenizer a few hundred times.
  explicit TextCuts(const Tokenizer& tokenizer);

  // The parts of `text` in their order, as views of it: none is empty.
  std::vector<absl::string_view> Split(absl::string_view text) const;

  // The texts of the tokens behind which it is cut.
  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  // Where the first token of `text` at or behind `from` ends; npos: there is
  // none.
  size_t NextCut(absl::string_view text, size_t from) const;

  std::vector<std::string> tokens_;
  bool begins_token_[256] = {};  // by the first byte
};

}  // namespace lockstep
