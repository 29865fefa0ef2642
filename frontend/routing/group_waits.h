#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "common/timer_thread.h"

namespace lockstep {

// Requests that wait for a group: each until its time, or until all are told
// that there may be one for them, whichever is first.
//
//   const uint64_t id = waits.Add(until, [call] { call->Attempt(); });
//   waits.End(id);   // this one waits no longer
//   waits.EndAll();  // a group has become ready
//
// Any thread. Each function is called once, on the thread of `timers`, unless
// that ends before. Those who wait are requests in flight, which are bounded.
class GroupWaits {
 public:
  // `timers` may be made after this, and must end before it does.
  explicit GroupWaits(TimerThread* timers) : timers_(timers) {}

  // `until` is of the routing clock. No id is 0.
  uint64_t Add(absl::Time until, std::function<void()> call);
  // Does nothing for one that is over.
  void End(uint64_t id);
  void EndAll();

  size_t number() const;

 private:
  struct Wait {
    uint64_t timer = 0;
    std::function<void()> call;
  };
  using Waits = std::map<uint64_t, Wait>;

  void OnTime(uint64_t id);
  void CallSoon(Wait wait);

  TimerThread* const timers_;
  mutable absl::Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  Waits waits_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
