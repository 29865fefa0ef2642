#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

// What a request needs to know of the model that answers it.
struct ServedModel {
  std::string name;
  uint32_t max_context_tokens = 0;
  uint32_t vocabulary_size = 0;  // of the logits; the tokenizer may know fewer
  std::string fingerprint = {};  // of all that decides the bits of an answer
};

}  // namespace lockstep
