#include "worker/service/output_router.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <utility>

#include "common/error_reason.h"

namespace lockstep {
namespace {

// Of a choice that has come to no answer.
absl::Status FaultOf(v1::FinishReason reason) {
  switch (reason) {
    case v1::GRAMMAR_TOO_COMPLEX:
      return MakeError(
          ErrorReason::kInvalidRequest,
          "the grammar is too complex: what it allows next takes more than the "
          "limits to find.");
    case v1::NOT_FINITE:
      return MakeError(
          ErrorReason::kNotFinite,
          "the model computed no number for this request: all its logits for a "
          "token, or a value of the embedding, are NaN or infinite.");
    default:
      return absl::OkStatus();
  }
}

}  // namespace

OutputRouter::OutputRouter(RequestInbox* inbox)
    : inbox_(inbox),
      queue_([this](absl::Span<StepOutput> outputs) { Tell(outputs); }) {}

absl::Status OutputRouter::Register(std::shared_ptr<OutputStream> stream) {
  absl::MutexLock lock(&mutex_);
  const auto [at, is_new] =
      numbers_.emplace(stream->request_id(), stream->number());
  if (!is_new) {
    return MakeError(ErrorReason::kRequestIdTaken,
                     absl::StrCat("request_id \"", stream->request_id(),
                                  "\" is that of a live request."));
  }
  streams_.emplace(stream->number(), std::move(stream));
  return absl::OkStatus();
}

void OutputRouter::Unregister(const OutputStream& stream) {
  Remove(stream);
  RunIfEmpty();
}

std::shared_ptr<OutputStream> OutputRouter::Find(
    const std::string& request_id) const {
  absl::MutexLock lock(&mutex_);
  const auto at = numbers_.find(request_id);
  return at == numbers_.end() ? nullptr : streams_.at(at->second);
}

std::vector<std::shared_ptr<OutputStream>> OutputRouter::Live() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<OutputStream>> result;
  for (const auto& [number, stream] : streams_) result.push_back(stream);
  return result;
}

void OutputRouter::EndEarly(OutputStream& stream, v1::AbortCause cause,
                            const absl::Status& status) {
  stream.set_abort_cause(cause, /*of_all=*/true);
  stream.Fail(status);
  v1::AbortSequences abort;
  abort.set_request(stream.number());
  abort.set_cause(cause);
  inbox_->Abort(abort);
}

void OutputRouter::OnEnd(std::function<void(const OutputStream&)> ended) {
  absl::MutexLock lock(&ended_mutex_);
  ended_ = std::move(ended);
}

int OutputRouter::num_live() const {
  absl::MutexLock lock(&mutex_);
  return streams_.size();
}

void OutputRouter::WhenEmpty(std::function<void()> done) {
  {
    absl::MutexLock lock(&mutex_);
    when_empty_ = std::move(done);
  }
  RunIfEmpty();
}

std::vector<std::shared_ptr<OutputStream>> OutputRouter::FailAll(
    const absl::Status& status) {
  std::vector<std::shared_ptr<OutputStream>> streams = Live();
  for (const auto& stream : streams) {
    stream->Fail(status);
    Remove(*stream);
  }
  for (const auto& stream : streams) stream->Wake();
  RunIfEmpty();
  return streams;
}

void OutputRouter::OnFirstScheduled(SequenceId id, int cached_tokens) {
  queue_.Add({.kind = StepOutput::Kind::kFirstScheduled,
              .id = id,
              .cached_tokens = cached_tokens});
}

void OutputRouter::OnPromptLogprobs(
    SequenceId id, std::vector<v1::PositionLogprobs> logprobs) {
  // Those of the other choices are the same.
  if (id.choice != 0) return;
  queue_.Add({.kind = StepOutput::Kind::kPromptLogprobs,
              .id = id,
              .logprobs = std::move(logprobs)});
}

void OutputRouter::OnToken(SequenceId id, uint32_t token,
                           std::vector<v1::PositionLogprobs> logprobs) {
  queue_.Add({.kind = StepOutput::Kind::kToken,
              .id = id,
              .token = token,
              .logprobs = std::move(logprobs)});
}

void OutputRouter::OnEmbedding(SequenceId id, std::vector<float> embedding) {
  queue_.Add({.kind = StepOutput::Kind::kEmbedding,
              .id = id,
              .embedding = std::move(embedding)});
}

void OutputRouter::OnFinish(SequenceId id, v1::FinishReason reason,
                            std::optional<uint32_t> stop_token_id) {
  queue_.Add({.kind = StepOutput::Kind::kFinish,
              .id = id,
              .reason = reason,
              .stop_token_id = stop_token_id});
}

// Each reader is woken once, when its stream has been told everything.
void OutputRouter::Tell(absl::Span<StepOutput> outputs) {
  for (StepOutput& output : outputs) {
    const auto stream = FindNumber(output.id.request);
    if (stream != nullptr) TellOne(output, stream);
  }
  RunIfEmpty();
  for (const auto& stream : touched_) stream->Wake();
  touched_.clear();
}

void OutputRouter::TellOne(StepOutput& output,
                           const std::shared_ptr<OutputStream>& stream) {
  switch (output.kind) {
    case StepOutput::Kind::kFirstScheduled:
      if (stream->was_scheduled()) return;
      stream->OnFirstScheduled(output.cached_tokens);
      inbox_->Release(stream->request());
      return;
    case StepOutput::Kind::kPromptLogprobs:
      EndIfTooSlow(*stream,
                   stream->OnPromptLogprobs(std::move(output.logprobs)));
      break;
    case StepOutput::Kind::kToken:
      EndIfTooSlow(*stream, stream->OnToken(output.id.choice, output.token,
                                            std::move(output.logprobs)));
      break;
    case StepOutput::Kind::kEmbedding:
      stream->OnEmbedding(output.embedding);
      break;
    case StepOutput::Kind::kFinish:
      TellFinish(output, *stream);
      break;
  }
  if (stream->ClaimWake()) touched_.push_back(stream);
}

// A fault goes first: its other choices would come to it as well, and this
// one's finish may be the last.
void OutputRouter::TellFinish(const StepOutput& output, OutputStream& stream) {
  const absl::Status fault = FaultOf(output.reason);
  if (!fault.ok()) EndEarly(stream, v1::ABORT_CAUSE_UNSPECIFIED, fault);
  const bool is_last =
      stream.OnFinish(output.id.choice, output.reason, output.stop_token_id);
  if (!is_last) return;
  if (!stream.was_scheduled()) inbox_->Release(stream.request());
  LOG(INFO) << stream.Description();
  Remove(stream);
  absl::MutexLock lock(&ended_mutex_);
  if (ended_) ended_(stream);
}

std::shared_ptr<OutputStream> OutputRouter::FindNumber(uint64_t number) const {
  absl::MutexLock lock(&mutex_);
  const auto at = streams_.find(number);
  return at == streams_.end() ? nullptr : at->second;
}

void OutputRouter::EndIfTooSlow(OutputStream& stream,
                                const absl::Status& buffered) {
  if (!buffered.ok()) EndEarly(stream, v1::SLOW_READER, buffered);
}

void OutputRouter::Remove(const OutputStream& stream) {
  absl::MutexLock lock(&mutex_);
  numbers_.erase(stream.request_id());
  streams_.erase(stream.number());
}

void OutputRouter::RunIfEmpty() {
  std::function<void()> done;
  {
    absl::MutexLock lock(&mutex_);
    if (!streams_.empty()) return;
    done = std::exchange(when_empty_, nullptr);
  }
  if (done) done();
}

}  // namespace lockstep
