#include "frontend/generation/answer.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "common/utf8.h"
#include "frontend/routing/served_model.h"

namespace lockstep {

Answer::Answer(const GenerateSpec* spec, const Tokenizer* tokenizer,
               ResponseSink* sink)
    : spec_(*spec), tokenizer_(tokenizer), sink_(sink) {}

void Answer::KeepPrompt(std::vector<uint32_t> token_ids, std::string text) {
  accepted_event_.prompt_token_ids = std::move(token_ids);
  accepted_event_.prompt_text = std::move(text);
}

absl::Status Answer::Add(const v1::WorkerGenerateResponse& message,
                         std::vector<uint32_t>* stopped) {
  if (complete_) {
    return absl::InternalError("the worker went on after its summary.");
  }
  switch (message.event_case()) {
    case v1::WorkerGenerateResponse::kAccepted:
      if (std::exchange(accepted_, true)) {
        return absl::InternalError("the worker accepted the request twice.");
      }
      accepted_event_.request_id = spec_.request_id;
      accepted_event_.model = spec_.model.name;
      accepted_event_.prompt_tokens = message.accepted().prompt_tokens();
      accepted_event_.seed = message.accepted().seed();
      accepted_event_.system_fingerprint = SystemFingerprint(spec_.model);
      sink_->OnAccepted(std::move(accepted_event_));
      return absl::OkStatus();
    case v1::WorkerGenerateResponse::kDelta:
      return OnDelta(message.delta(), stopped);
    case v1::WorkerGenerateResponse::kFinish:
      return OnFinish(message.finish());
    case v1::WorkerGenerateResponse::kEmbedding:
      return OnEmbedding(message.embedding());
    case v1::WorkerGenerateResponse::kSummary:
      return OnSummary(message.summary());
    case v1::WorkerGenerateResponse::EVENT_NOT_SET:
      break;
  }
  return absl::InternalError("the worker sent an event of unknown kind.");
}

absl::Status Answer::OnEmbedding(const v1::Embedding& embedding) {
  if (!spec_.embedding.has_value() || std::exchange(embedded_, true)) {
    return absl::InternalError(
        "the worker sent an embedding that was not asked for.");
  }
  sink_->OnEmbedding(embedding);
  return absl::OkStatus();
}

absl::Status Answer::OnSummary(const v1::Summary& summary) {
  const size_t finished = embedded_ ? 1 : finish_reasons_.size();
  if (finished != num_choices()) {
    return absl::InternalError(absl::StrCat("the worker ended the answer with ",
                                            finished, " of ", num_choices(),
                                            " choices finished."));
  }
  summary_ = {summary.usage(), summary.timing()};
  summary_.usage.set_completion_tokens(completion_tokens());
  for (const auto& [index, choice] : choices_) {
    summary_.reasoning_tokens += choice.stream.num_reasoning_tokens();
  }
  complete_ = true;
  return absl::OkStatus();
}

uint32_t Answer::completion_tokens() const {
  uint32_t sum = 0;
  for (const auto& [index, choice] : choices_) {
    sum += choice.stream.num_tokens();
  }
  return sum;
}

absl::Status Answer::OnDelta(const v1::TokenDelta& delta,
                             std::vector<uint32_t>* stopped) {
  LOCKSTEP_ASSIGN_OR_RETURN(Choice * choice, FindChoice(delta.index()));
  // What the worker computed before it heard of the end.
  if (choice->stream.has_ended()) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(ChoiceStream::Piece piece,
                            choice->stream.Add(delta.token_ids()));
  DeltaEvent event;
  event.index = delta.index();
  SetOutput(std::move(piece.output), &event);
  event.token_ids.assign(delta.token_ids().begin(),
                         delta.token_ids().begin() + piece.num_tokens);
  event.logprobs.assign(
      delta.logprobs().begin(),
      delta.logprobs().begin() +
          std::min<size_t>(piece.num_tokens, delta.logprobs_size()));
  event.prompt_logprobs.assign(delta.prompt_logprobs().begin(),
                               delta.prompt_logprobs().end());
  SetTexts(&event.logprobs);
  SetTexts(&event.prompt_logprobs);
  sink_->OnDelta(std::move(event));
  if (choice->stream.has_ended()) stopped->push_back(delta.index());
  return absl::OkStatus();
}

absl::Status Answer::OnFinish(const v1::TokenFinish& finish) {
  LOCKSTEP_ASSIGN_OR_RETURN(Choice * choice, FindChoice(finish.index()));
  choice->finished = true;
  LOCKSTEP_ASSIGN_OR_RETURN(OutputDelta rest, choice->stream.Finish());
  if (!rest.empty()) {
    DeltaEvent event;
    event.index = finish.index();
    SetOutput(std::move(rest), &event);
    sink_->OnDelta(std::move(event));
  }
  FinishEvent event;
  event.index = finish.index();
  event.reason = choice->stream.has_ended() ? v1::STOP : finish.reason();
  if (choice->stream.has_ended()) {
    event.stop_string = choice->stream.stop_string();
  } else if (finish.has_stop_token_id()) {
    event.stop_token_id = finish.stop_token_id();
  }
  event.usage = finish.usage();
  event.usage.set_completion_tokens(choice->stream.num_tokens());
  event.reasoning_tokens = choice->stream.num_reasoning_tokens();
  event.awaits_tools =
      event.reason == v1::STOP && choice->stream.has_whole_calls();
  finish_reasons_.push_back(event.reason);
  sink_->OnFinish(std::move(event));
  return absl::OkStatus();
}

absl::StatusOr<Answer::Choice*> Answer::FindChoice(uint32_t index) {
  if (index >= num_choices()) {
    return absl::InternalError(absl::StrCat("the worker answered choice ",
                                            index, " of ", num_choices(), "."));
  }
  auto found = choices_.find(index);
  if (found == choices_.end()) {
    const ChatReading* reading = reading_.has_value() ? &*reading_ : nullptr;
    Choice choice = {ChoiceStream(tokenizer_, spec_, reading)};
    found = choices_.emplace(index, std::move(choice)).first;
  }
  if (found->second.finished) {
    return absl::InternalError(absl::StrCat("the worker went on with choice ",
                                            index, " after its finish."));
  }
  return &found->second;
}

void Answer::SetOutput(OutputDelta output, DeltaEvent* event) const {
  event->text = std::move(output.content);
  event->tool_calls = std::move(output.tool_calls);
  if (spec_.include_reasoning) event->reasoning = std::move(output.reasoning);
}

void Answer::SetTexts(std::vector<v1::PositionLogprobs>* positions) const {
  for (v1::PositionLogprobs& position : *positions) {
    SetText(position.mutable_token());
    for (v1::TokenLogprob& token : *position.mutable_top()) SetText(&token);
  }
}

// The token as it is, with its leading space. An id that only pads the model's
// vocabulary has an empty text.
void Answer::SetText(v1::TokenLogprob* token) const {
  const Vocabulary& vocabulary = tokenizer_->vocabulary();
  const uint32_t id = token->token_id();
  token->set_text("");
  if (id >= vocabulary.size()) return;
  const absl::string_view bytes = vocabulary.token(id).bytes;
  token->set_text(RepairUtf8(bytes));
  if (token->text() != bytes) token->set_bytes(std::string(bytes));
}

}  // namespace lockstep
