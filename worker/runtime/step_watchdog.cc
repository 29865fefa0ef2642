#include "worker/runtime/step_watchdog.h"

#include <absl/time/clock.h>
#include <pthread.h>

#include <utility>

namespace lockstep {

StepWatchdog::StepWatchdog(absl::Duration limit,
                           std::function<void(uint64_t step)> overdue)
    : limit_(limit),
      overdue_(std::move(overdue)),
      thread_([this] { Watch(); }) {
  pthread_setname_np(thread_.native_handle(), "watchdog");
}

StepWatchdog::~StepWatchdog() {
  {
    absl::MutexLock lock(&mutex_);
    destroyed_ = true;
  }
  thread_.join();
}

void StepWatchdog::BeginStep(uint64_t step) {
  absl::MutexLock lock(&mutex_);
  running_ = step;
  begin_ = absl::Now();
}

void StepWatchdog::EndStep() {
  absl::MutexLock lock(&mutex_);
  running_ = 0;
}

// Looks a few times within the limit, so that a step costs no wake-up.
void StepWatchdog::Watch() {
  uint64_t overdue_step = 0;
  {
    absl::MutexLock lock(&mutex_);
    while (overdue_step == 0) {
      if (mutex_.AwaitWithTimeout(absl::Condition(&destroyed_), limit_ / 4)) {
        return;
      }
      if (running_ != 0 && absl::Now() - begin_ > limit_) {
        overdue_step = running_;
      }
    }
  }
  overdue_(overdue_step);
}

}  // namespace lockstep
