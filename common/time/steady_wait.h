#pragma once

#include <absl/time/time.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace lockstep {

// Waits until `done()`, which is called under `lock`, or until `timeout` has
// passed by the clock that nobody sets. True where it is done. Absl's timed
// waits follow the wall clock: one that is set meanwhile ends them early, or
// late.
//
//   std::unique_lock lock(mutex_);
//   WaitFor(changed_, lock, timeout, [&] { return has_ended_; });
//
// An infinite timeout is a day.
template <typename Done>
bool WaitFor(std::condition_variable& changed,
             std::unique_lock<std::mutex>& lock, absl::Duration timeout,
             Done done) {
  const absl::Duration most = std::min(timeout, absl::Hours(24));
  return changed.wait_for(lock, absl::ToChronoNanoseconds(most),
                          std::move(done));
}

}  // namespace lockstep
