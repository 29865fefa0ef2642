#pragma once

#include <absl/strings/string_view.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace lockstep {

// What a tokenizer.json has of a model of SentencePiece's BPE, as transformers
// converts it (SentencePieceExtractor in convert_slow_tokenizer.py). In its
// pieces U+2581 stands for a space. Pure functions.

struct ScoredPiece {
  absl::string_view text;  // UTF-8
  double score = 0;
};

// Which two pieces become which, the first of them first: such a model says it
// by a score for each piece. Of equal scores that with the longer left part is
// first, then that with the longer right part, in characters; then the piece
// that comes first in `pieces`. Time grows with the squares of their lengths.
nlohmann::json SentencePieceMerges(const std::vector<ScoredPiece>& pieces);

// A text into pieces' characters, and back. With `space_prefix` there is a
// space before each text, and between special tokens.
nlohmann::json SentencePieceNormalizer(bool space_prefix);
nlohmann::json SentencePieceDecoder(bool space_prefix);

}  // namespace lockstep
