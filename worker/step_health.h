#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "common/health/health_board.h"
#include "worker/group/step_progress.h"

namespace lockstep {

// How long a step may be overdue, by --step_timeout, before a rank is not ready
// and not live. Slow steps are no reason to take a group out of service; one
// that no watchdog has ended, in twice the time it has, is one to kill it.
HealthBoard::WorkLimits StepWorkLimits(absl::Duration step_timeout);

// How long a follower's step thread has been in one step.
//
//   StepAge age(source.progress(), /*first_step=*/3);
//   health->SetWork(StepWorkLimits(timeout), [&] { return age.Overdue(); });
//
// Any thread.
class StepAge {
 public:
  using Clock = std::chrono::steady_clock;

  // Steps before `first_step` are the warm-up's, which may take their time.
  // `progress` must outlive this.
  StepAge(const StepProgress* progress, uint64_t first_step)
      : progress_(progress), first_step_(first_step) {}

  // As far as it was seen: since it was first asked in this step. Zero between
  // steps.
  absl::Duration Overdue(Clock::time_point now = Clock::now());

 private:
  struct Seen {
    uint64_t step;
    Clock::time_point since;
  };

  const StepProgress* const progress_;
  const uint64_t first_step_;
  absl::Mutex mutex_;
  std::optional<Seen> seen_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
