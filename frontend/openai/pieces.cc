#include "frontend/openai/pieces.h"

#include <iterator>
#include <limits>
#include <utility>

#include "common/utf8.h"

namespace lockstep::openai {

std::vector<Piece> PieceMaker::OnAccepted(AcceptedEvent event) {
  accepted_ = std::move(event);
  return Release();
}

std::vector<Piece> PieceMaker::OnDelta(DeltaEvent event) {
  std::move(event.prompt_logprobs.begin(), event.prompt_logprobs.end(),
            std::back_inserter(prompt_logprobs_));
  const bool has_more = !event.text.empty() || !event.token_ids.empty() ||
                        !event.reasoning.empty() || !event.tool_calls.empty();
  if (has_more && !style_.prompt_only) {
    waiting_.push_back({event.index, std::move(event.text),
                        std::move(event.token_ids), std::move(event.logprobs),
                        std::nullopt, std::move(event.reasoning),
                        std::move(event.tool_calls)});
  }
  return Release();
}

std::vector<Piece> PieceMaker::OnFinish(FinishEvent event) {
  const uint32_t index = event.index;
  if (style_.prompt_only) {
    event.reason = v1::LENGTH;
    event.stop_token_id.reset();
    event.stop_string.reset();
  }
  waiting_.push_back({index, "", {}, {}, std::move(event)});
  return Release();
}

bool PieceMaker::MustWait() const {
  return style_.echo && style_.logprobs &&
         prompt_logprobs_.size() + 1 < accepted_.prompt_tokens;
}

std::vector<Piece> PieceMaker::Release() {
  if (MustWait()) return {};
  std::vector<Piece> pieces;
  if (style_.echo && !std::exchange(echoed_, true)) {
    for (uint32_t i = 0; i < style_.n; ++i) pieces.push_back(Echo(i));
  }
  std::move(waiting_.begin(), waiting_.end(), std::back_inserter(pieces));
  waiting_.clear();
  return pieces;
}

Piece PieceMaker::Echo(uint32_t index) const {
  Piece piece;
  piece.index = index;
  piece.text = accepted_.prompt_text;
  if (style_.logprobs) {
    piece.logprobs.push_back(FirstPosition());
    piece.logprobs.insert(piece.logprobs.end(), prompt_logprobs_.begin(),
                          prompt_logprobs_.end());
  }
  return piece;
}

// Nothing comes before it that could make it more or less probable.
v1::PositionLogprobs PieceMaker::FirstPosition() const {
  v1::PositionLogprobs position;
  const uint32_t id = accepted_.prompt_token_ids.front();
  position.mutable_token()->set_token_id(id);
  position.mutable_token()->set_logprob(
      std::numeric_limits<float>::quiet_NaN());
  const Vocabulary& vocabulary = tokenizer_.vocabulary();
  position.mutable_token()->set_text(
      id < vocabulary.size() ? RepairUtf8(vocabulary.token(id).bytes) : "");
  return position;
}

}  // namespace lockstep::openai
