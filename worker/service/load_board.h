#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "proto/worker.pb.h"
#include "worker/group/request_inbox.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {

// The load of the group: what it had after its last step, and what has come
// since. The step thread writes it, calls read it.
class LoadBoard {
 public:
  // `inbox` must outlive this.
  explicit LoadBoard(const RequestInbox* inbox) : inbox_(inbox) {}

  using Clock = std::chrono::steady_clock;

  // At the end of each step.
  void Publish(const SchedulerStats& stats,
               Clock::time_point now = Clock::now());
  v1::Load load() const;
  uint64_t preemptions() const;
  uint64_t not_finite() const;

  // How long work has been due without a step's end, as far as it was seen: of
  // requests that no step knows of yet, since this was first asked. Zero when
  // nothing is due.
  absl::Duration Overdue(Clock::time_point now = Clock::now());

 private:
  bool SomeAreKnown() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const RequestInbox* const inbox_;
  mutable absl::Mutex mutex_;
  SchedulerStats stats_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point step_end_ ABSL_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> seen_due_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
