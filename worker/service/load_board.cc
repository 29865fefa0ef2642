#include "worker/service/load_board.h"

#include <algorithm>

namespace lockstep {

void LoadBoard::Publish(const SchedulerStats& stats, Clock::time_point now) {
  absl::MutexLock lock(&mutex_);
  stats_ = stats;
  step_end_ = now;
  if (!SomeAreKnown()) seen_due_.reset();
}

bool LoadBoard::SomeAreKnown() const {
  return stats_.running_sequences + stats_.waiting_sequences > 0;
}

absl::Duration LoadBoard::Overdue(Clock::time_point now) {
  const bool some_wait = inbox_->waiting().sequences > 0;
  absl::MutexLock lock(&mutex_);
  if (!some_wait && !SomeAreKnown()) {
    seen_due_.reset();
    return absl::ZeroDuration();
  }
  if (!seen_due_.has_value()) seen_due_ = SomeAreKnown() ? step_end_ : now;
  return absl::FromChrono(now - std::max(*seen_due_, step_end_));
}

v1::Load LoadBoard::load() const {
  const RequestInbox::Waiting untold = inbox_->waiting();
  absl::MutexLock lock(&mutex_);
  v1::Load load;
  load.set_running_sequences(stats_.running_sequences);
  load.set_waiting_sequences(stats_.waiting_sequences + untold.sequences);
  load.set_waiting_tokens(stats_.waiting_tokens + untold.tokens);
  load.set_free_pages(stats_.free_pages);
  load.set_cached_pages(stats_.cached_pages);
  load.set_total_pages(stats_.total_pages);
  load.set_step(stats_.step);
  return load;
}

uint64_t LoadBoard::preemptions() const {
  absl::MutexLock lock(&mutex_);
  return stats_.preemptions;
}

uint64_t LoadBoard::not_finite() const {
  absl::MutexLock lock(&mutex_);
  return stats_.not_finite;
}

}  // namespace lockstep
