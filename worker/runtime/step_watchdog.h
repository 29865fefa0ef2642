#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <thread>

namespace lockstep {

// Notices a step that does not end, be it that this rank hangs or that it waits
// in a collective for one that does.
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

  absl::Mutex mutex_;
  uint64_t running_ ABSL_GUARDED_BY(mutex_) = 0;  // its step; 0: none
  absl::Time begin_ ABSL_GUARDED_BY(mutex_);      // of running_
  bool destroyed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep
