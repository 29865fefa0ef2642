#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <functional>
#include <map>
#include <thread>

#include "bench/gateway/sent_times.h"

namespace lockstep::bench {

// A thread that does things at their times, or as soon after as it is woken.
//
//   Pacer pacer;
//   pacer.At(time, [call] { call->Write(); });
//
// Any thread. What is not done yet when it is destroyed is not done.
class Pacer {
 public:
  Pacer();
  ~Pacer();
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;

  void At(SteadyClock::time_point time, std::function<void()> task);

 private:
  void Work();
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || has_earlier_;
  }

  absl::Mutex mutex_;
  std::multimap<SteadyClock::time_point, std::function<void()>> tasks_
      ABSL_GUARDED_BY(mutex_);
  bool has_earlier_ ABSL_GUARDED_BY(mutex_) = false;  // than is waited for
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // "pacer"; joined by the destructor
};

}  // namespace lockstep::bench
