#include "frontend/openai/answer_writer.h"

#include <utility>

namespace lockstep::openai {

AnswerWriter::AnswerWriter(AnswerStyle style, size_t prompts,
                           const Tokenizer* tokenizer,
                           std::shared_ptr<http::ResponseWriter> writer)
    : style_(std::move(style)),
      tokenizer_(tokenizer),
      writer_(std::move(writer)),
      prompts_(prompts, PieceMaker(&style_, tokenizer)) {}

void AnswerWriter::OnAccepted(size_t prompt, AcceptedEvent event) {
  usage_.prompt_tokens += event.prompt_tokens;
  if (!std::exchange(begun_, true)) Begin();
  ShowAll(prompt, prompts_[prompt].OnAccepted(std::move(event)));
}

void AnswerWriter::OnDelta(size_t prompt, DeltaEvent event) {
  Keep(event);
  if (!failure_.ok()) return;
  ShowAll(prompt, prompts_[prompt].OnDelta(std::move(event)));
}

void AnswerWriter::OnFinish(size_t prompt, FinishEvent event) {
  usage_.reasoning_tokens += event.reasoning_tokens;
  ShowAll(prompt, prompts_[prompt].OnFinish(std::move(event)));
}

void AnswerWriter::OnSummary(const SummaryEvent& event) {
  usage_.cached_tokens += event.usage.cached_tokens();
  failovers_ += event.failovers;
}

void AnswerWriter::ShowAll(size_t prompt, std::vector<Piece> pieces) {
  for (Piece& piece : pieces) {
    usage_.completion_tokens += piece.token_ids.size();
    Show(prompt, std::move(piece));
  }
}

}  // namespace lockstep::openai
