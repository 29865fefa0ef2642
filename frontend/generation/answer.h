#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/generation/choice_stream.h"
#include "frontend/generation/response_sink.h"
#include "frontend/generation/spec.h"
#include "proto/worker.pb.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// Turns the worker's answer to one request, tokens, into the client's: text,
// and in a chat reasoning and tool calls. Or it is an embedding, as it comes.
//
//   Answer answer(&spec, &tokenizer, &sink);
//   std::vector<uint32_t> stopped;
//   LOCKSTEP_RETURN_IF_ERROR(answer.Add(message, &stopped));
//   abort(stopped);
//   …
//   if (answer.complete()) sink.OnSummary(answer.summary());
//
// All events but the terminal one go to the sink from within Add. A choice that
// ended here, at a stop string, is finished by the worker's own finish of it,
// which follows its abort and says what it took. Not thread-safe.
class Answer {
 public:
  // All must outlive this.
  Answer(const GenerateSpec* spec, const Tokenizer* tokenizer,
         ResponseSink* sink);

  // What OnAccepted says of the prompt; before the first message.
  void KeepPrompt(std::vector<uint32_t> token_ids, std::string text);

  // The prompt was a chat, and so is the answer; before the first message.
  void ReadAsChat(ChatReading reading) { reading_ = std::move(reading); }

  // Appends to `stopped` the choices that have just met a stop string, or have
  // made their one call, and that the worker should compute no further.
  // INTERNAL where the worker breaks the protocol.
  absl::Status Add(const v1::WorkerGenerateResponse& message,
                   std::vector<uint32_t>* stopped);

  // Whether the worker's summary, its last message, was added.
  bool complete() const { return complete_; }
  // Of all choices, up to their stop strings; at any time.
  uint32_t completion_tokens() const;
  // Completion tokens are those the client got.
  const SummaryEvent& summary() const { return summary_; }
  // Of the choices, as far as they are finished, in the order they did.
  const std::vector<v1::FinishReason>& finish_reasons() const {
    return finish_reasons_;
  }

 private:
  struct Choice {
    ChoiceStream stream;
    bool finished = false;
  };

  absl::Status OnDelta(const v1::TokenDelta& delta,
                       std::vector<uint32_t>* stopped);
  absl::Status OnFinish(const v1::TokenFinish& finish);
  uint32_t num_choices() const {
    return spec_.sampling.has_n() ? spec_.sampling.n() : 1;
  }
  absl::Status OnEmbedding(const v1::Embedding& embedding);
  absl::Status OnSummary(const v1::Summary& summary);
  absl::StatusOr<Choice*> FindChoice(uint32_t index);
  void SetOutput(OutputDelta output, DeltaEvent* event) const;
  void SetTexts(std::vector<v1::PositionLogprobs>* positions) const;
  void SetText(v1::TokenLogprob* token) const;

  const GenerateSpec& spec_;
  const Tokenizer* const tokenizer_;
  ResponseSink* const sink_;
  std::optional<ChatReading> reading_;  // of a chat
  std::map<uint32_t, Choice> choices_;  // made when first heard of
  std::vector<v1::FinishReason> finish_reasons_;
  SummaryEvent summary_;
  AcceptedEvent accepted_event_;
  bool accepted_ = false;
  bool embedded_ = false;
  bool complete_ = false;
};

}  // namespace lockstep
