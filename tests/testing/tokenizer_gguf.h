#pragma once

#include <string>

#include "tests/testing/gguf_writer.h"

namespace lockstep::testing {

// The metadata that a GGUF file has for a tokenizer.json, a file: tokens, their
// types, and merges, or of SentencePiece's the scores of tokens. `pre` names
// the splitting rule of one with merges.
GgufWriter TokenizerGguf(const std::string& tokenizer_json,
                         const std::string& pre);

}  // namespace lockstep::testing
