#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/openai/answer_writer.h"
#include "frontend/openai/logprobs.h"

namespace lockstep::openai {

// An answer as server-sent events: chunks as their tokens come, one that
// finishes each choice, one with the usage if it is wanted, and [DONE]. An
// error before the stream has begun is a response of its own, after that one
// event, and the connection ends with it.
class StreamedAnswer : public AnswerWriter {
 public:
  StreamedAnswer(AnswerStyle style, size_t prompts, const Tokenizer* tokenizer,
                 std::shared_ptr<http::ResponseWriter> writer);

  void Complete() override;
  void Fail(const absl::Status& status) override;
  void AwaitRoom(std::function<void()> resume) override {
    writer_->AwaitRoom(std::move(resume));
  }

 private:
  struct Choice {
    LogprobsWriter logprobs;
    bool begun = false;
  };

  void Begin() override;
  void Show(size_t prompt, Piece piece) override;
  // A piece is a chunk, or several where it has parts of several kinds.
  std::vector<Json> ChatDeltas(const Piece& piece) const;
  bool HasTokens(const Piece& piece) const;
  // The first chunk of a piece takes its tokens.
  Json ChoiceJson(size_t prompt, Choice* choice, const char* shown, Json value,
                  Piece* piece);
  // A chat's choice says who speaks, the first one what was asked.
  void OpenChat(size_t prompt, size_t index);
  void Write(const std::string& choices, const std::string& further = "");
  void WriteEvent(const std::string& data);

  const std::string envelope_;  // of every chunk, open at its end
  std::vector<Choice> choices_;
  bool has_begun_ = false;
};

}  // namespace lockstep::openai
