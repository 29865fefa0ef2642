#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/openai/answer_writer.h"
#include "frontend/openai/logprobs.h"

namespace lockstep::openai {

// An answer as one JSON object, once it is complete.
class WholeAnswer : public AnswerWriter {
 public:
  WholeAnswer(AnswerStyle style, size_t prompts, const Tokenizer* tokenizer,
              std::shared_ptr<http::ResponseWriter> writer);

  void Complete() override;
  void Fail(const absl::Status& status) override;
  // It is kept here: max_tokens bounds it, and what all may hold.
  void AwaitRoom(std::function<void()> resume) override { resume(); }
  size_t work_bytes() const override { return bytes_; }

 private:
  struct Choice {
    std::string text;
    std::string reasoning;
    std::vector<ToolCallDelta> tool_calls;  // each of them whole
    std::vector<uint32_t> token_ids;
    std::vector<v1::PositionLogprobs> logprobs;
    FinishEvent finish;
  };

  void Keep(const DeltaEvent& event) override;
  void Show(size_t prompt, Piece piece) override;
  Json MessageJson(Choice choice) const;
  Json ChoiceJson(size_t prompt, uint32_t index);

  std::vector<Choice> choices_;
  size_t bytes_ = 0;  // of the answer so far, about
};

}  // namespace lockstep::openai
