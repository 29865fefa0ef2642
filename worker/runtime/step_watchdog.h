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
//   watchdog.BeginStep(step);  …  watchdog.EndStep();
//
// `overdue` is called at most once, on the thread "watchdog". Begin and End are
// the step thread's; they take no lock.
class StepWatchdog {
 public:
  StepWatchdog(absl::Duration limit,
               std::function<void(uint64_t step)> overdue);
  ~StepWatchdog();
  StepWatchdog(const StepWatchdog&) = delete;
  StepWatchdog& operator=(const StepWatchdog&) = delete;

  void BeginStep(uint64_t step);
  void EndStep();

 private:
  void Watch();

  const absl::Duration limit_;
  const std::function<void(uint64_t step)> overdue_;

  // A step writes these two without a lock, begin first: whoever sees a step
  // sees when it, or a later one, began.
  std::atomic<std::chrono::steady_clock::time_point> begin_;
  std::atomic<uint64_t> running_ = 0;  // its step; 0: none

  // Not absl's, whose waits follow the wall clock.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool destroyed_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace lockstep
