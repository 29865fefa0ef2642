#pragma once

#include <absl/time/time.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace lockstep {

// Notices a step that does not end, be it that this rank hangs or that it waits
// for one that does: in a collective, or for the leader's frame or digest.
//
//   StepWatchdog watchdog(limit, [&](uint64_t step) { … });
//   watchdog.SetLimitByWarmUp({.least = absl::Minutes(1), .multiple = 100});
//   watchdog.BeginStep(step);  …  watchdog.EndStep();
//
// It looks several times within the limit and adds up the time between looks
// that found the same step. So a process that was stopped meanwhile, and found
// a single long pause, is not taken for one that hangs.
//
// `overdue` is called once for such a step, on the thread "watchdog". Begin and
// End are the step thread's; after the warm-up they take no lock.
class StepWatchdog {
 public:
  struct WarmUp {
    int steps = 2;
    // The limit of all steps after these: a multiple of the slowest of them,
    // but no less than `least`, and else no more than `most`.
    absl::Duration least = absl::ZeroDuration();
    absl::Duration most = absl::InfiniteDuration();
    double multiple = 0;
  };

  StepWatchdog(absl::Duration limit,
               std::function<void(uint64_t step)> overdue);
  ~StepWatchdog();
  StepWatchdog(const StepWatchdog&) = delete;
  StepWatchdog& operator=(const StepWatchdog&) = delete;

  // Before the first step.
  void SetLimitByWarmUp(const WarmUp& warm_up);

  void BeginStep(uint64_t step);
  void EndStep();

  absl::Duration limit() const;

 private:
  using Clock = std::chrono::steady_clock;

  void Watch();
  void SetLimit(absl::Duration limit);

  const std::function<void(uint64_t step)> overdue_;

  // The step thread's.
  WarmUp warm_up_ = {.steps = 0};  // steps: left of it
  Clock::time_point begin_;        // of a step of the warm-up
  absl::Duration slowest_;

  std::atomic<uint64_t> running_ = 0;  // 0: none

  // Not absl's, whose waits follow the wall clock.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  absl::Duration limit_;      // guarded by mutex_
  bool has_changed_ = false;  // limit_; guarded by mutex_
  bool destroyed_ = false;    // guarded by mutex_
  std::thread thread_;
};

}  // namespace lockstep
