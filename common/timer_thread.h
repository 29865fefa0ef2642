#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace lockstep {

// Calls functions at their times, by the clock that nobody sets, on a thread of
// its own, "timers".
//
//   TimerThread timers;
//   const uint64_t id = timers.At(deadline, [stream] { … });
//   timers.Cancel(id);
//
// Holds as many as are neither called nor cancelled; its users bound that. Any
// thread. The destructor stops it.
class TimerThread {
 public:
  using Clock = std::chrono::steady_clock;

  TimerThread();
  ~TimerThread();
  TimerThread(const TimerThread&) = delete;
  TimerThread& operator=(const TimerThread&) = delete;

  // At once where `time` has passed. `call` must not block. No id is 0.
  uint64_t At(Clock::time_point time, std::function<void()> call);

  // It may run, or be about to. Does nothing for one that has run.
  void Cancel(uint64_t id);

  // Lets a running one end; no other is called from then on. For an owner of
  // what they use, who ends before the timers do. Not from a call.
  void Stop();

 private:
  void Run();

  std::mutex mutex_;  // of all below; absl's waits follow the wall clock
  std::condition_variable changed_;
  std::map<std::pair<Clock::time_point, uint64_t>, std::function<void()>>
      calls_;
  std::map<uint64_t, Clock::time_point> times_;  // of calls_, by id
  uint64_t last_id_ = 0;
  bool stopped_ = false;

  std::thread thread_;
};

}  // namespace lockstep
