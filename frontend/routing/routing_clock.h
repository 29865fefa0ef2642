#pragma once

#include <absl/time/time.h>

#include "common/timer_thread.h"

namespace lockstep {

// By the clock that nobody sets, as the parts of routing are given it.
inline absl::Time RoutingNow() {
  return absl::UnixEpoch() +
         absl::FromChrono(TimerThread::Clock::now().time_since_epoch());
}

inline TimerThread::Clock::time_point ToTimerClock(absl::Time time) {
  return TimerThread::Clock::time_point(
      absl::ToChronoNanoseconds(time - absl::UnixEpoch()));
}

}  // namespace lockstep
