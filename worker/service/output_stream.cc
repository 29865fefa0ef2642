#include "worker/service/output_stream.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <utility>

#include "common/error_reason.h"
#include "common/status_macros.h"
#include "worker/core/sequence.h"

namespace lockstep {
namespace {

int NumPositions(const v1::TokenDelta& delta) {
  return delta.token_ids_size() + delta.prompt_logprobs_size();
}

}  // namespace

OutputStream::OutputStream(std::string request_id,
                           std::shared_ptr<const v1::AddRequest> request,
                           const Options& options)
    : request_id_(std::move(request_id)),
      request_(std::move(request)),
      options_(options),
      choices_(std::max<uint32_t>(request_->sampling().n(), 1)) {
  // An earlier call produced these; they count as this request's output.
  for (uint32_t index = 0; index < choices_.size(); ++index) {
    choices_[index].num_resumed = ResumeTokens(*request_, index).size();
    choices_[index].num_tokens = choices_[index].num_resumed;
    choices_[index].finish_taken = HasEnded(*request_, index);
  }
}

void OutputStream::OnFirstScheduled(int cached_tokens) {
  absl::MutexLock lock(&mutex_);
  if (scheduled_at_.has_value()) return;
  scheduled_at_ = Clock::now();
  cached_tokens_ = cached_tokens;
  RequestMeters* const meters = options_.meters;
  if (meters == nullptr) return;
  const int prompt_tokens = request_->prompt_token_ids_size();
  meters->queued.Observe(*scheduled_at_ - start_);
  meters->prompt_tokens.Observe(prompt_tokens);
  meters->prompted += prompt_tokens;
  meters->cached += cached_tokens;
}

absl::Status OutputStream::OnPromptLogprobs(
    std::vector<v1::PositionLogprobs> logprobs) {
  absl::MutexLock lock(&mutex_);
  if (!status_.ok()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CountBuffered(logprobs.size()));
  for (v1::PositionLogprobs& position : logprobs) {
    *DeltaOf(0).add_prompt_logprobs() = std::move(position);
  }
  return absl::OkStatus();
}

absl::Status OutputStream::OnToken(uint32_t choice, uint32_t token,
                                   std::vector<v1::PositionLogprobs> logprobs) {
  absl::MutexLock lock(&mutex_);
  const Clock::time_point now = Clock::now();
  Choice& of = choices_[choice];
  MeterToken(of, now);
  last_token_at_ = of.last_token_at = now;
  if (!first_token_at_.has_value()) first_token_at_ = now;
  if (!of.first_token_at.has_value()) of.first_token_at = now;
  ++of.num_tokens;
  if (!status_.ok()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CountBuffered(1));
  v1::TokenDelta& delta = DeltaOf(choice);
  delta.add_token_ids(token);
  for (v1::PositionLogprobs& position : logprobs) {
    *delta.add_logprobs() = std::move(position);
  }
  return absl::OkStatus();
}

void OutputStream::OnEmbedding(absl::Span<const float> values) {
  absl::MutexLock lock(&mutex_);
  embedding_.emplace().mutable_values()->Assign(values.begin(), values.end());
}

absl::Status OutputStream::CountBuffered(int positions) {
  num_buffered_ += positions;
  if (num_buffered_ <= options_.max_buffered_positions) {
    return absl::OkStatus();
  }
  return MakeError(
      ErrorReason::kSlowReader,
      absl::StrCat("the client reads too slowly: more than ",
                   options_.max_buffered_positions, " tokens wait for it."));
}

bool OutputStream::OnFinish(uint32_t choice, v1::FinishReason reason,
                            std::optional<uint32_t> stop_token_id) {
  absl::MutexLock lock(&mutex_);
  Choice& of = choices_[choice];
  of.has_finished = true;
  of.reason = reason;
  of.stop_token_id = stop_token_id;
  MeterChoice(of);
  if (!HasFinished()) return false;
  MeterRequest(Clock::now());
  return true;
}

void OutputStream::MeterToken(const Choice& choice,
                              Clock::time_point now) const {
  RequestMeters* const meters = options_.meters;
  if (meters == nullptr) return;
  ++meters->generated;
  if (!first_token_at_.has_value()) {
    meters->first_token.Observe(now - start_);
  } else if (choice.first_token_at.has_value()) {
    meters->token.Observe(now - choice.last_token_at);
  }
}

void OutputStream::MeterChoice(const Choice& choice) const {
  RequestMeters* const meters = options_.meters;
  // Of one that an earlier call ended, that call has told.
  if (meters == nullptr || choice.finish_taken) return;
  ++(choice.reason == v1::STOP     ? meters->stopped
     : choice.reason == v1::LENGTH ? meters->cut
                                   : meters->aborted);
  if (request_->has_embedding()) return;
  const uint32_t generated = choice.num_tokens - choice.num_resumed;
  meters->generated_tokens.Observe(generated);
  if (generated < 2) return;
  meters->mean_token.Observe((choice.last_token_at - *choice.first_token_at) /
                             (generated - 1));
}

void OutputStream::MeterRequest(Clock::time_point now) const {
  RequestMeters* const meters = options_.meters;
  if (meters == nullptr) return;
  meters->total.Observe(now - start_);
  if (!scheduled_at_.has_value() || !first_token_at_.has_value()) return;
  meters->prefill.Observe(*first_token_at_ - *scheduled_at_);
  meters->decode.Observe(*last_token_at_ - *first_token_at_);
  meters->computed.Observe(*last_token_at_ - *scheduled_at_);
}

bool OutputStream::was_scheduled() const {
  absl::MutexLock lock(&mutex_);
  return scheduled_at_.has_value();
}

void OutputStream::Fail(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  // After the summary the answer is complete; it is the one terminal event.
  if (!status_.ok() || summary_taken_) return;
  status_ = status;
  for (Choice& choice : choices_) choice.deltas.clear();
}

void OutputStream::Abandon(const absl::Status& status) {
  set_abort_cause(v1::SLOW_READER, /*of_all=*/true);
  Fail(status);
  is_abandoned_ = true;
  Wake();
}

void OutputStream::Hold(std::shared_ptr<const void> lease) {
  absl::MutexLock lock(&mutex_);
  lease_ = std::move(lease);
}

void OutputStream::set_abort_cause(v1::AbortCause cause, bool of_all) {
  absl::MutexLock lock(&mutex_);
  const bool is_first = abort_cause_ == v1::ABORT_CAUSE_UNSPECIFIED;
  if (is_first || (of_all && !abort_is_of_all_)) abort_cause_ = cause;
  abort_is_of_all_ |= of_all;
}

void OutputStream::set_reader(std::function<void()> reader) {
  absl::MutexLock lock(&reader_mutex_);
  reader_ = std::move(reader);
}

void OutputStream::Wake() {
  wake_is_claimed_ = false;
  absl::MutexLock lock(&reader_mutex_);
  if (reader_) reader_();
}

uint64_t OutputStream::num_taken() const {
  absl::MutexLock lock(&mutex_);
  return num_taken_;
}

OutputStream::Next OutputStream::Take(v1::WorkerGenerateResponse* message) {
  absl::MutexLock lock(&mutex_);
  const Next next = TakeLocked(message);
  if (next == Next::kMessage) ++num_taken_;
  return next;
}

OutputStream::Next OutputStream::TakeLocked(
    v1::WorkerGenerateResponse* message) {
  message->Clear();
  if (!status_.ok()) return Next::kEnd;
  if (!accepted_taken_) {
    accepted_taken_ = true;
    v1::Accepted& accepted = *message->mutable_accepted();
    accepted.set_request_id(request_id_);
    accepted.set_prompt_tokens(request_->prompt_token_ids_size());
    accepted.set_seed(request_->sampling().seed());
    return Next::kMessage;
  }
  for (uint32_t index = 0; index < choices_.size(); ++index) {
    if (TakeOf(index, message)) return Next::kMessage;
  }
  if (!HasFinished()) return Next::kNothing;
  if (summary_taken_) return Next::kEnd;
  summary_taken_ = true;
  FillSummary(message->mutable_summary());
  return Next::kMessage;
}

absl::Status OutputStream::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

OutputStream::End OutputStream::end() const {
  absl::MutexLock lock(&mutex_);
  End end{.status = status_, .cause = abort_cause_, .reasons = {}};
  for (const Choice& choice : choices_) end.reasons.push_back(choice.reason);
  return end;
}

std::string OutputStream::Description() const {
  absl::MutexLock lock(&mutex_);
  const auto reason_name = [](std::string* out, const Choice& choice) {
    absl::StrAppend(out, choice.has_finished
                             ? v1::FinishReason_Name(choice.reason)
                             : "UNFINISHED");
  };
  std::string line = absl::StrCat(
      "request ", request_id_, options_.caller.empty() ? "" : " ",
      options_.caller, " prompt_tokens=", request_->prompt_token_ids_size(),
      " cached_tokens=", cached_tokens_, " completion_tokens=", NumTokens(),
      " first_token_ms=", MicrosecondsTo(first_token_at_) / 1000,
      " total_ms=", MicrosecondsTo(Clock::now()) / 1000,
      " finish=", absl::StrJoin(choices_, ",", reason_name));
  if (abort_cause_ != v1::ABORT_CAUSE_UNSPECIFIED) {
    absl::StrAppend(&line, " cause=", v1::AbortCause_Name(abort_cause_));
  }
  if (!status_.ok()) {
    absl::StrAppend(&line,
                    " status=", absl::StatusCodeToString(status_.code()));
  }
  return line;
}

v1::TokenDelta& OutputStream::DeltaOf(uint32_t choice) {
  std::deque<v1::TokenDelta>& deltas = choices_[choice].deltas;
  if (deltas.empty() || NumPositions(deltas.back()) == kMaxPositionsOfMessage) {
    deltas.emplace_back().set_index(choice);
  }
  return deltas.back();
}

// A choice's tokens go before its finish.
bool OutputStream::TakeOf(uint32_t index, v1::WorkerGenerateResponse* message) {
  Choice& choice = choices_[index];
  if (!choice.deltas.empty()) {
    num_buffered_ -= NumPositions(choice.deltas.front());
    *message->mutable_delta() = std::move(choice.deltas.front());
    choice.deltas.pop_front();
    return true;
  }
  if (!choice.has_finished || choice.finish_taken) return false;
  choice.finish_taken = true;
  if (embedding_.has_value()) {
    *message->mutable_embedding() = *std::move(embedding_);
    return true;
  }
  v1::TokenFinish& finish = *message->mutable_finish();
  finish.set_index(index);
  finish.set_reason(choice.reason);
  if (choice.stop_token_id.has_value()) {
    finish.set_stop_token_id(*choice.stop_token_id);
  }
  *finish.mutable_usage() = UsageOf(choice.num_tokens);
  return true;
}

void OutputStream::FillSummary(v1::Summary* summary) const {
  *summary->mutable_usage() = UsageOf(NumTokens());
  v1::Timing& timing = *summary->mutable_timing();
  timing.set_first_scheduled_us(MicrosecondsTo(scheduled_at_));
  timing.set_first_token_us(MicrosecondsTo(first_token_at_));
  timing.set_last_token_us(MicrosecondsTo(last_token_at_));
}

v1::Usage OutputStream::UsageOf(uint32_t completion_tokens) const {
  v1::Usage usage;
  usage.set_prompt_tokens(request_->prompt_token_ids_size());
  usage.set_cached_tokens(cached_tokens_);
  usage.set_completion_tokens(completion_tokens);
  return usage;
}

uint32_t OutputStream::NumTokens() const {
  uint32_t sum = 0;
  for (const Choice& choice : choices_) sum += choice.num_tokens;
  return sum;
}

bool OutputStream::HasFinished() const {
  return std::all_of(choices_.begin(), choices_.end(),
                     [](const Choice& choice) { return choice.has_finished; });
}

int64_t OutputStream::MicrosecondsTo(
    std::optional<Clock::time_point> time) const {
  if (!time.has_value()) return 0;
  return std::chrono::duration_cast<std::chrono::microseconds>(*time - start_)
      .count();
}

}  // namespace lockstep
