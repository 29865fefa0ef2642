#include "worker/service/output_router.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <utility>

namespace lockstep {

absl::Status OutputRouter::Register(std::shared_ptr<OutputStream> stream) {
  absl::MutexLock lock(&mutex_);
  const auto [at, is_new] =
      numbers_.emplace(stream->request_id(), stream->number());
  if (!is_new) {
    return absl::AlreadyExistsError(
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

void OutputRouter::WhenEmpty(std::function<void()> done) {
  {
    absl::MutexLock lock(&mutex_);
    when_empty_ = std::move(done);
  }
  RunIfEmpty();
}

void OutputRouter::FailAll(const absl::Status& status) {
  std::vector<std::shared_ptr<OutputStream>> streams = Live();
  for (const auto& stream : streams) {
    stream->Fail(status);
    LOG(INFO) << stream->Description();
    Remove(*stream);
  }
  waker_.Add(&streams);
}

void OutputRouter::OnFirstScheduled(SequenceId id, int cached_tokens) {
  const auto stream = FindNumber(id.request);
  if (stream == nullptr || stream->was_scheduled()) return;
  stream->OnFirstScheduled(cached_tokens);
  inbox_->Release(stream->request());
}

void OutputRouter::OnPromptLogprobs(
    SequenceId id, std::vector<v1::PositionLogprobs> logprobs) {
  // Those of the other choices are the same.
  if (id.choice != 0) return;
  const auto stream = FindNumber(id.request);
  if (stream == nullptr) return;
  EndIfTooSlow(*stream, stream->OnPromptLogprobs(std::move(logprobs)));
  Touch(stream);
}

void OutputRouter::OnToken(SequenceId id, uint32_t token,
                           std::vector<v1::PositionLogprobs> logprobs) {
  const auto stream = FindNumber(id.request);
  if (stream == nullptr) return;
  EndIfTooSlow(*stream, stream->OnToken(id.choice, token, std::move(logprobs)));
  Touch(stream);
}

void OutputRouter::OnFinish(SequenceId id, v1::FinishReason reason,
                            std::optional<uint32_t> stop_token_id) {
  const auto stream = FindNumber(id.request);
  if (stream == nullptr) return;
  Touch(stream);
  if (!stream->OnFinish(id.choice, reason, stop_token_id)) return;
  if (!stream->was_scheduled()) inbox_->Release(stream->request());
  LOG(INFO) << stream->Description();
  Remove(*stream);
}

void OutputRouter::EndStep() {
  waker_.Add(&touched_);
  RunIfEmpty();
}

std::shared_ptr<OutputStream> OutputRouter::FindNumber(uint64_t number) const {
  absl::MutexLock lock(&mutex_);
  const auto at = streams_.find(number);
  return at == streams_.end() ? nullptr : at->second;
}

void OutputRouter::Touch(std::shared_ptr<OutputStream> stream) {
  if (stream->ClaimWake()) touched_.push_back(std::move(stream));
}

void OutputRouter::EndIfTooSlow(OutputStream& stream,
                                const absl::Status& buffered) {
  if (buffered.ok()) return;
  stream.set_abort_cause(v1::SLOW_READER);
  stream.Fail(buffered);
  v1::AbortSequences abort;
  abort.set_request(stream.number());
  abort.set_cause(v1::SLOW_READER);
  inbox_->Abort(abort);
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
