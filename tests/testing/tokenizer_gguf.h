#pragma once

#include <string>

#include "tests/testing/gguf_writer.h"

namespace lockstep::testing {

// The metadata that a GGUF file has for a byte-level tokenizer.json, a file:
// tokens, their types, and merges. `pre` names the splitting rule.
GgufWriter TokenizerGguf(const std::string& tokenizer_json,
                         const std::string& pre);

}  // namespace lockstep::testing
