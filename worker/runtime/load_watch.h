#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "worker/group/group_failure.h"

namespace lockstep {

// The leader's list of the ranks that still load the model. The warm-up begins
// when it is empty, so that a rank on a slow disk makes no step late.
//
//   LoadWatch loads({.ranks = 4, .tell = …}, &failure);
//   loads.Start();            // and load
//   loads.SetLoaded(0);       // likewise of others, as they say so
//   LOCKSTEP_RETURN_IF_ERROR(loads.WaitForAll());
//
// The first rank that has not loaded in time is reported to `failure`, which
// may be this one: its own thread, "load-watch", looks after it. It adds up its
// pauses, so that the time in which the process was stopped does not count.
class LoadWatch {
 public:
  struct Options {
    int ranks = 1;
    absl::Duration timeout = absl::Minutes(30);
    absl::Duration tell_every = absl::Seconds(5);
    // Is told who is missing, on the thread. May be null.
    std::function<void(const std::string&)> tell = nullptr;
  };

  // `failure` must outlive this, and be disarmed before this is destroyed.
  LoadWatch(Options options, GroupFailure* failure);
  ~LoadWatch();
  LoadWatch(const LoadWatch&) = delete;
  LoadWatch& operator=(const LoadWatch&) = delete;

  // From now on the time counts. Once.
  void Start();

  // Any thread, any number of times, even before Start.
  void SetLoaded(int rank);

  // OK when all ranks have loaded, and nothing more is told; else the group's
  // failure. After Start.
  absl::Status WaitForAll();

 private:
  void Watch();
  std::string Missing() const;  // REQUIRES: mutex_ is held

  const Options options_;
  GroupFailure* const failure_;

  // Not absl's, whose waits follow the wall clock.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int> missing_;  // guarded by mutex_
  // The group failed, or ~LoadWatch; guarded by mutex_.
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace lockstep
