#include "worker/service/admission.h"

#include <absl/strings/str_cat.h>

#include <random>
#include <utility>
#include <vector>

#include "common/error_reason.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

std::string RandomPrefix() {
  std::random_device random;
  return absl::StrCat("req-", absl::Hex(random(), absl::kZeroPad8), "-");
}

absl::Status DeadlineInQueue() {
  return MakeError(ErrorReason::kDeadlineInQueue,
                   "the call's deadline passed before its first step.");
}

}  // namespace

Admission::Admission(RequestInbox* inbox, OutputRouter* router,
                     const Options& options)
    : inbox_(inbox),
      router_(router),
      options_(options),
      id_prefix_(RandomPrefix()) {
  router_->OnEnd([this](const OutputStream& stream) { Linger(stream); });
}

Admission::~Admission() { router_->OnEnd(nullptr); }

void Admission::OnState(std::function<void(v1::ServingState)> changed) {
  absl::MutexLock lock(&state_mutex_);
  changed_ = std::move(changed);
}

void Admission::Open() {
  absl::MutexLock lock(&state_mutex_);
  AdmissionState next = Now();
  next.is_warm = true;
  Change(next);
}

void Admission::Drain() {
  absl::MutexLock lock(&state_mutex_);
  AdmissionState next = Now();
  next.is_drained = true;
  Change(next);
}

absl::Status Admission::Undrain() {
  absl::MutexLock lock(&state_mutex_);
  AdmissionState next = Now();
  if (!next.closed.ok()) {
    return MakeError(
        ErrorReason::kWorkerStopping,
        absl::StrCat("the group is ", v1::ServingState_Name(next.closed_state),
                     " and will not serve again."));
  }
  next.is_drained = false;
  Change(next);
  return absl::OkStatus();
}

void Admission::Close(v1::ServingState state, const absl::Status& why) {
  absl::MutexLock lock(&state_mutex_);
  AdmissionState next = Now();
  next.closed_state = state;
  next.closed = why;
  Change(next);
}

AdmissionState Admission::Now() const {
  absl::MutexLock lock(&mutex_);
  return state_;
}

// Health never says that a group serves which does not.
void Admission::Change(const AdmissionState& next) {
  const v1::ServingState before = state(), after = next.state();
  const bool is_news = changed_ && before != after;
  if (is_news && before == v1::SERVING) changed_(after);
  {
    absl::MutexLock lock(&mutex_);
    state_ = next;
  }
  if (is_news && before != v1::SERVING) changed_(after);
}

v1::ServingState Admission::state() const { return Now().state(); }

absl::StatusOr<std::shared_ptr<OutputStream>> Admission::Submit(
    const std::string& request_id, v1::AddRequest request,
    Clock::time_point deadline, std::string caller) {
  auto stream =
      SubmitCall(request_id, std::move(request), deadline, std::move(caller));
  if (stream.ok()) {
    counts_.Accepted();
  } else {
    counts_.Refused(stream.status());
  }
  return stream;
}

absl::Status Admission::Check(const v1::AddRequest& request) {
  absl::Status status = Now().CheckServing();
  if (status.ok()) status = inbox_->CheckRoom(request);
  if (!status.ok()) counts_.Refused(status);
  return status;
}

absl::StatusOr<std::shared_ptr<OutputStream>> Admission::SubmitCall(
    const std::string& request_id, v1::AddRequest request,
    Clock::time_point deadline, std::string caller) {
  OutputStream::Options options = options_.stream;
  options.caller = std::move(caller);
  absl::MutexLock lock(&mutex_);
  LOCKSTEP_RETURN_IF_ERROR(state_.CheckServing());
  if (deadline <= Clock::now()) return DeadlineInQueue();
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto stream, SubmitLocked(request_id, std::move(request), options));
  OpenCall& call = open_calls_[stream->number()];
  call.stream = stream;
  if (deadline < kNoDeadline) {
    call.timer = timers_.At(deadline, [this, stream] { Expire(*stream); });
  }
  return stream;
}

absl::StatusOr<std::shared_ptr<OutputStream>> Admission::SubmitAnyway(
    const std::string& request_id, v1::AddRequest request) {
  absl::MutexLock lock(&mutex_);
  OutputStream::Options options = options_.stream;
  options.meters = nullptr;
  return SubmitLocked(request_id, std::move(request), options);
}

absl::StatusOr<std::shared_ptr<OutputStream>> Admission::SubmitLocked(
    const std::string& request_id, v1::AddRequest request,
    const OutputStream::Options& options) {
  const uint64_t number = last_number_ + 1;
  request.set_request(number);
  auto stream = std::make_shared<OutputStream>(
      request_id.empty() ? absl::StrCat(id_prefix_, number) : request_id,
      std::make_shared<const v1::AddRequest>(std::move(request)), options);
  LOCKSTEP_RETURN_IF_ERROR(router_->Register(stream));
  if (const absl::Status added = inbox_->Add(stream->request()); !added.ok()) {
    router_->Unregister(*stream);
    return added;
  }
  last_number_ = number;
  return stream;
}

void Admission::Abort(OutputStream& stream, absl::Span<const uint32_t> choices,
                      v1::AbortCause cause) {
  v1::AbortSequences abort;
  abort.set_request(stream.number());
  abort.mutable_choices()->Assign(choices.begin(), choices.end());
  abort.set_cause(cause);
  stream.set_abort_cause(cause, /*of_all=*/choices.empty());
  absl::MutexLock lock(&mutex_);
  inbox_->Abort(abort);
}

void Admission::End(OutputStream& stream, v1::AbortCause cause,
                    const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    router_->EndEarly(stream, cause, status);
  }
  stream.Wake();
}

void Admission::Expire(OutputStream& stream) {
  End(stream, v1::DEADLINE,
      stream.was_scheduled()
          ? MakeError(ErrorReason::kDeadlineExceeded,
                      "the call's deadline passed before the answer was "
                      "complete.")
          : DeadlineInQueue());
}

// What is left of the answer is in the reader's hands; the deadline of the call
// itself is gRPC's.
void Admission::Linger(const OutputStream& stream) {
  const uint64_t num_taken = stream.num_taken();
  absl::MutexLock lock(&mutex_);
  const auto at = open_calls_.find(stream.number());
  if (at == open_calls_.end()) return;
  OpenCall& call = at->second;
  timers_.Cancel(call.timer);
  call.timer = timers_.At(Clock::now() + options_.read_timeout,
                          [this, stream = call.stream, num_taken] {
                            LookAfter(*stream, num_taken);
                          });
}

void Admission::LookAfter(OutputStream& stream, uint64_t num_taken) {
  if (stream.num_taken() > num_taken) return Linger(stream);
  stream.Abandon(MakeError(
      ErrorReason::kSlowReader,
      absl::StrCat("the client has read nothing of its complete answer for ",
                   options_.read_timeout.count(), " ms.")));
}

// Whoever has waited for the calls finds them counted.
void Admission::Leave(const OutputStream& stream) {
  absl::MutexLock lock(&mutex_);
  const auto call = open_calls_.find(stream.number());
  if (call == open_calls_.end()) return;
  timers_.Cancel(call->second.timer);
  counts_.Ended(stream);
  open_calls_.erase(call);
}

void Admission::EndCalls(const absl::Status& status) {
  std::vector<std::shared_ptr<OutputStream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    calls_were_ended_ = true;
    for (const auto& [number, call] : open_calls_) {
      streams.push_back(call.stream);
    }
  }
  for (const auto& stream : streams) {
    stream->Fail(status);
    stream->Wake();
  }
}

void Admission::WaitForCalls() {
  absl::MutexLock lock(&mutex_);
  const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return open_calls_.empty() || calls_were_ended_;
  };
  mutex_.Await(absl::Condition(&done));
}

}  // namespace lockstep
