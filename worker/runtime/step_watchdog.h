#pragma once

#include <absl/time/time.h>

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
// the step thread's.
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

  // Not absl's, whose waits follow the wall clock. Guards all below.
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t running_ = 0;                         // its step; 0: none
  std::chrono::steady_clock::time_point begin_;  // of running_
  bool destroyed_ = false;
  std::thread thread_;
};

}  // namespace lockstep
