#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "frontend/generation/response_sink.h"
#include "frontend/http/response_writer.h"
#include "frontend/openai/answer_json.h"
#include "frontend/openai/pieces.h"
#include "frontend/openai/request.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep::openai {

// The events of all prompts of a request become its answer, a stream or a
// whole.
//
//   StreamedAnswer answer(style, prompts, &tokenizer, http_writer);
//   answer.OnDelta(/*prompt=*/0, std::move(event));
//   …
//   answer.Complete();  // or Fail
//
// Not thread-safe. Nothing comes after Complete or Fail.
class AnswerWriter {
 public:
  AnswerWriter(AnswerStyle style, size_t prompts, const Tokenizer* tokenizer,
               std::shared_ptr<http::ResponseWriter> writer);
  virtual ~AnswerWriter() = default;
  AnswerWriter(const AnswerWriter&) = delete;
  AnswerWriter& operator=(const AnswerWriter&) = delete;

  void OnAccepted(size_t prompt, AcceptedEvent event);
  void OnDelta(size_t prompt, DeltaEvent event);
  void OnFinish(size_t prompt, FinishEvent event);
  void OnSummary(const SummaryEvent& event);
  virtual void Complete() = 0;
  virtual void Fail(const absl::Status& status) = 0;

  // Why it can not go on, or OK; then there is a Fail.
  const absl::Status& failure() const { return failure_; }

  // What Complete works on, as far as that takes time.
  virtual size_t work_bytes() const { return 0; }

  // Of the prompts that workers have accepted so far.
  uint32_t prompt_tokens() const { return usage_.prompt_tokens; }

  // Back-pressure, where the answer goes out as it comes.
  virtual void AwaitRoom(std::function<void()> resume) = 0;

 protected:
  // The first prompt was accepted by a worker.
  virtual void Begin() {}
  // Of what is kept until Complete, before it is shown.
  virtual void Keep(const DeltaEvent& /*event*/) {}
  virtual void Show(size_t prompt, Piece piece) = 0;

  size_t ChoiceOf(size_t prompt, uint32_t index) const {
    return prompt * style_.n + index;
  }
  const PieceMaker& prompt(size_t i) const { return prompts_[i]; }
  size_t num_prompts() const { return prompts_.size(); }

  const AnswerStyle style_;
  const Tokenizer* const tokenizer_;
  const std::shared_ptr<http::ResponseWriter> writer_;
  UsageSums usage_;    // so far; final in Complete
  int failovers_ = 0;  // likewise
  absl::Status failure_;

 private:
  void ShowAll(size_t prompt, std::vector<Piece> pieces);

  std::vector<PieceMaker> prompts_;
  bool begun_ = false;
};

}  // namespace lockstep::openai
