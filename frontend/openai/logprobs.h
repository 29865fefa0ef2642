#pragma once

#include <absl/types/span.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontend/openai/request.h"
#include "proto/sampling.pb.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep::openai {

using Json = nlohmann::ordered_json;

// Log-probabilities as each schema shows them. JSON has no infinity: what is
// below -9999 is shown as -9999, as OpenAI does.
//
// What one choice is told over time; of a stream, chunk by chunk: the arrays of
// all chunks are those of the whole answer. Not thread-safe.
//
//   LogprobsWriter writer(&style, &tokenizer);
//   chunk["logprobs"] = writer.Write(positions);
class LogprobsWriter {
 public:
  // Both must outlive this.
  LogprobsWriter(const AnswerStyle* style, const Tokenizer* tokenizer)
      : style_(*style), tokenizer_(*tokenizer) {}

  // A position without a token id's log-probability has NaN there: the first of
  // a prompt.
  Json Write(absl::Span<const v1::PositionLogprobs> positions);

 private:
  Json WriteChat(absl::Span<const v1::PositionLogprobs> positions) const;
  Json WriteCompletion(absl::Span<const v1::PositionLogprobs> positions);
  std::string TextOf(const v1::TokenLogprob& token) const;
  Json ChatToken(const v1::TokenLogprob& token) const;

  const AnswerStyle& style_;
  const Tokenizer& tokenizer_;
  size_t offset_ = 0;  // in characters, of the next token in the text
};

// vLLM's prompt_logprobs: null for the first token, then for each an object by
// token id.
Json PromptLogprobs(absl::Span<const v1::PositionLogprobs> positions);

// The number nearest to it that JSON has; null for NaN.
Json LogprobNumber(float logprob);

}  // namespace lockstep::openai
