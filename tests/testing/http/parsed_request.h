#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "frontend/generation/spec.h"
#include "frontend/openai/fields.h"
#include "frontend/openai/request.h"

namespace lockstep::openai {

// What any of the five parsers makes of a request.
struct ParsedForTest {
  absl::Status status;
  GenerateSpec spec;
  AnswerStyle style;
  TokenizeRequest tokenize;
  DetokenizeSpec detokenize;
  EmbeddingsRequest embeddings;  // what is of each input is in `spec`, too
  uint64_t unknown = 0;          // fields
};

// The shortest request that there is.
nlohmann::json LeastRequest(Endpoint endpoint);

// For a model "tiny" with this many tokens of context and 300 ids, that makes
// embeddings.
ParsedForTest ParseForTest(Endpoint endpoint, const std::string& body,
                           uint32_t max_context = 1000);

}  // namespace lockstep::openai
