#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/generation/response_sink.h"
#include "frontend/openai/request.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep::openai {

// A part of one choice, in order; the last one has `finish` and no text.
struct Piece {
  uint32_t index = 0;  // of the choice, among those of its prompt
  std::string text;
  std::vector<uint32_t> token_ids;  // of the answer
  std::vector<v1::PositionLogprobs> logprobs;
  std::optional<FinishEvent> finish = {};
  // Of a chat.
  std::string reasoning = {};
  std::vector<ToolCallDelta> tool_calls = {};
};

// The answer to one prompt as OpenAI's API wants it: what the pipeline says,
// with the prompt before it where it is to be echoed, and without the answer
// where only the prompt is wanted. Streamed or not, the pieces are the same.
//
//   PieceMaker pieces(&style, &tokenizer);
//   for (Piece& piece : pieces.OnDelta(std::move(event))) show(piece);
//
// Where an echo has log-probabilities, which come in parts and for choice 0
// alone, all choices wait for them. Not thread-safe.
class PieceMaker {
 public:
  // Both must outlive this.
  PieceMaker(const AnswerStyle* style, const Tokenizer* tokenizer)
      : style_(*style), tokenizer_(*tokenizer) {}

  std::vector<Piece> OnAccepted(AcceptedEvent event);
  std::vector<Piece> OnDelta(DeltaEvent event);
  std::vector<Piece> OnFinish(FinishEvent event);

  // From OnAccepted on.
  const AcceptedEvent& accepted() const { return accepted_; }
  // Where they were asked for: of all prompt tokens but the first, as they
  // come.
  const std::vector<v1::PositionLogprobs>& prompt_logprobs() const {
    return prompt_logprobs_;
  }

 private:
  bool MustWait() const;
  std::vector<Piece> Release();
  Piece Echo(uint32_t index) const;
  v1::PositionLogprobs FirstPosition() const;

  const AnswerStyle& style_;
  const Tokenizer& tokenizer_;
  AcceptedEvent accepted_;
  std::vector<v1::PositionLogprobs> prompt_logprobs_;
  bool echoed_ = false;
  std::vector<Piece> waiting_;  // until the prompt is echoed
};

}  // namespace lockstep::openai
