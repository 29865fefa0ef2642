#include "frontend/routing/routed_call.h"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include <algorithm>
#include <utility>

#include "common/error_reason.h"
#include "frontend/routing/policy/page_chain.h"

namespace lockstep {

using SystemClock = std::chrono::system_clock;

namespace {

// Seen by nobody: whoever cancels says why.
constexpr char kCancelled[] = "the call was cancelled.";

absl::Time RoutingTime(SystemClock::time_point time) {
  return RoutingNow() + absl::FromChrono(time - SystemClock::now());
}

}  // namespace

std::string TooLateMessage(absl::Duration request_timeout) {
  return absl::StrCat("the answer was not complete after the ",
                      absl::FormatDuration(request_timeout),
                      " of --request_timeout.");
}

RoutedCall::RoutedCall(GroupSet* groups, v1::WorkerGenerateRequest request,
                       CallMetadata metadata, SystemClock::time_point deadline,
                       WorkerCall::Listener* listener)
    : groups_(groups),
      listener_(listener),
      metadata_(std::move(metadata)),
      client_deadline_(deadline),
      deadline_(std::min(deadline, SystemClock::now() +
                                       absl::ToChronoMilliseconds(
                                           groups->options().request_timeout))),
      point_(std::move(request)),
      plan_(groups->options().retry, HashText(point_.request().request_id())),
      silence_(groups->options().silence) {}

void RoutedCall::Start() {
  groups_->OnRequest();
  {
    absl::MutexLock lock(&mutex_);
    silence_.OnAttempt(RoutingNow());
  }
  LookForSilence();
  Attempt();
}

void RoutedCall::Attempt() {
  const auto& prompt = point_.request().prompt_token_ids();
  const auto& sampling = point_.request().sampling();
  auto lease =
      groups_->Pick({.route = {.prompt_token_ids = prompt,
                               .resumed_tokens = point_.num_tokens()},
                     .sequences = sampling.has_n() ? int64_t{sampling.n()} : 1,
                     .excluded = tried_,
                     .continues = began_with_.get()});
  if (lease.has_value()) return AttemptAt(*std::move(lease));
  NoGroup();
}

void RoutedCall::AttemptAt(GroupSet::Lease lease) {
  lease_.emplace(std::move(lease));
  std::shared_ptr<WorkerCall> call = lease_->client().Generate(
      point_.NextRequest(), metadata_, deadline_, this);
  bool is_cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled = is_cancelled_;
    if (!is_cancelled) {
      call_ = call;
      silence_.OnAttempt(RoutingNow());
      silent_for_ = absl::ZeroDuration();
    }
  }
  if (is_cancelled) return End(absl::CancelledError(kCancelled));
  call->Start();
}

void RoutedCall::NoGroup() {
  const bool is_there = groups_->HasGroup(began_with_.get());
  if (is_there && tried_.empty()) return Attempt();  // it has just come
  const absl::Time now = RoutingNow();
  const absl::Time until =
      std::min(plan_.WaitsUntil(is_there, now), RoutingTime(deadline_));
  const bool may_wait = plan_.has_token() || groups_->new_requests_wait();
  if (until <= now || !may_wait) return End(WhyNoGroup());
  tried_.clear();
  if (is_there) return AttemptLater();
  AwaitGroup(until);
}

void RoutedCall::AwaitGroup(absl::Time until) {
  absl::MutexLock lock(&mutex_);
  wait_ =
      groups_->AwaitGroup(began_with_.get(), until,
                          [self = shared_from_this()] { self->OnWaitOver(); });
  if (is_cancelled_) groups_->waits().End(wait_);
}

absl::Status RoutedCall::WhyNoGroup() const {
  if (SystemClock::now() >= deadline_) {
    return DescribeDeadline(absl::DeadlineExceededError(
        "the deadline of the call passed while there was no group for it."));
  }
  if (!last_failure_.ok()) return last_failure_;
  const auto model = groups_->Model();
  return model.ok() ? absl::UnavailableError("no worker takes the request.")
                    : model.status();
}

void RoutedCall::AttemptLater() {
  const absl::Time time = RoutingNow() + plan_.NextDelay();
  absl::MutexLock lock(&mutex_);
  wait_ = groups_->waits().Add(
      time, [self = shared_from_this()] { self->OnWaitOver(); });
  if (is_cancelled_) groups_->waits().End(wait_);
}

void RoutedCall::OnWaitOver() {
  bool is_cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    wait_ = 0;
    is_cancelled = is_cancelled_;
  }
  if (is_cancelled) return End(absl::CancelledError(kCancelled));
  Attempt();
}

void RoutedCall::OnMessage(const v1::WorkerGenerateResponse& message) {
  const auto* const news = point_.Take(message);
  NoteProgress(message);
  if (news != nullptr) return listener_->OnMessage(*news);
  Next();
}

void RoutedCall::NoteProgress(const v1::WorkerGenerateResponse& message) {
  if (message.has_accepted()) lease_->OnAccepted();
  const bool has_token =
      message.has_delta() || message.has_finish() || message.has_embedding();
  bool is_first = false;
  {
    absl::MutexLock lock(&mutex_);
    is_first = has_token && !silence_.has_token();
    silence_.OnMessage(has_token);
  }
  if (!is_first) return;
  if (plan_.has_token()) {
    ++failovers_;
    ++groups_->counters().failovers;
  }
  lease_->OnToken();
  plan_.OnToken();
  tried_.clear();
  began_with_ = lease_->model();
}

void RoutedCall::Next() {
  if (!owed_.empty()) return DeliverOwed();
  std::shared_ptr<WorkerCall> call;
  {
    absl::MutexLock lock(&mutex_);
    silence_.OnRead(RoutingNow());
    call = call_;
  }
  if (call != nullptr) return call->Next();
  // The last group was lost, and all it owed has been delivered.
  if (point_.is_complete()) return End(absl::OkStatus());
  Attempt();
}

void RoutedCall::DeliverOwed() {
  delivered_ = std::move(owed_.front());
  owed_.pop_front();
  listener_->OnMessage(delivered_);
}

void RoutedCall::OnEnd(absl::Status status) {
  bool is_cancelled = false;
  absl::Duration silent_for;
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled = is_cancelled_;
    silent_for = silent_for_;
  }
  const bool is_complete = status.ok() && point_.is_complete();
  if (is_complete) return End(std::move(status));
  // Cancelled when it was too late already, it is late in the words of all.
  if (is_cancelled) {
    return End(absl::IsDeadlineExceeded(status) ? DescribeDeadline(status)
                                                : std::move(status));
  }
  status = Describe(status, silent_for);
  const FailureKind kind = silent_for > absl::ZeroDuration()
                               ? FailureKind::kSilent
                               : KindOf(status, point_.was_accepted());
  if (!MayFollow(status, kind)) return End(std::move(status));
  last_failure_ = std::move(status);
  tried_.push_back(lease_->model());
  lease_.reset();
  {
    absl::MutexLock lock(&mutex_);
    call_ = nullptr;
  }
  owed_ = point_.TakeOwed();
  if (!owed_.empty()) return DeliverOwed();
  AttemptLater();
}

absl::Status RoutedCall::Describe(const absl::Status& status,
                                  absl::Duration silent_for) const {
  const std::string& address = lease_->client().address();
  if (silent_for > absl::ZeroDuration()) {
    return absl::UnavailableError(
        absl::StrCat("the worker at ", address, " sent nothing for ",
                     absl::FormatDuration(silent_for), "."));
  }
  if (status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the worker at ", address,
                     " ended the answer before it was complete."));
  }
  return absl::IsDeadlineExceeded(status) ? DescribeDeadline(status) : status;
}

absl::Status RoutedCall::DescribeDeadline(const absl::Status& status) const {
  if (deadline_ == client_deadline_) return status;
  return WithMessage(status,
                     TooLateMessage(groups_->options().request_timeout));
}

bool RoutedCall::MayFollow(const absl::Status& status, FailureKind kind) {
  if (absl::IsUnavailable(status) || absl::IsInternal(status)) {
    lease_->OnFailure();
  }
  if (!plan_.OnFailure(kind, RoutingNow())) return false;
  if (plan_.has_token()) return true;
  const bool may = groups_->TakeRetry();
  RoutingCounters& counters = groups_->counters();
  ++(may ? counters.retries : counters.refused_retries);
  return may;
}

void RoutedCall::End(absl::Status status) {
  uint64_t timer = 0;
  {
    absl::MutexLock lock(&mutex_);
    has_ended_ = true;
    timer = silence_timer_;
  }
  groups_->timers().Cancel(timer);
  lease_.reset();
  if (plan_.has_token() && absl::IsUnavailable(status)) {
    ++groups_->counters().lost_answers;
  }
  listener_->OnEnd(std::move(status));
}

void RoutedCall::LookForSilence() {
  const absl::Time now = RoutingNow();
  std::shared_ptr<WorkerCall> silent;
  {
    absl::MutexLock lock(&mutex_);
    if (has_ended_) return;
    if (call_ != nullptr && silence_.IsTooLong(now)) {
      silent_for_ = silence_.limit();
      silent = call_;
      silence_.OnMessage(/*has_token=*/false);  // it says so once
    }
    silence_timer_ = groups_->timers().At(ToTimerClock(silence_.NextLook(now)),
                                          [self = weak_from_this()] {
                                            if (const auto call = self.lock())
                                              call->LookForSilence();
                                          });
  }
  if (silent == nullptr) return;
  ++groups_->counters().silent_groups;
  silent->Cancel();
}

void RoutedCall::Cancel() {
  std::shared_ptr<WorkerCall> call;
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(is_cancelled_, true)) return;
    call = call_;
    if (wait_ != 0) groups_->waits().End(wait_);
  }
  if (call != nullptr) call->Cancel();
}

void RoutedCall::AbortChoices(const std::vector<uint32_t>& choices) {
  point_.OnAborted(choices);
  if (lease_.has_value()) lease_->client().Abort(point_.request_id(), choices);
}

}  // namespace lockstep
