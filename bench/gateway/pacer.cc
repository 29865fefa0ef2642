#include "bench/gateway/pacer.h"

#include <absl/time/time.h>
#include <pthread.h>

#include <utility>

namespace lockstep::bench {

Pacer::Pacer() : thread_([this] { Work(); }) {
  pthread_setname_np(thread_.native_handle(), "pacer");
}

Pacer::~Pacer() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void Pacer::At(SteadyClock::time_point time, std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  if (tasks_.empty() || time < tasks_.begin()->first) has_earlier_ = true;
  tasks_.emplace(time, std::move(task));
}

void Pacer::Work() {
  while (true) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      has_earlier_ = false;
      const absl::Duration left =
          tasks_.empty() ? absl::InfiniteDuration()
                         : absl::FromChrono(tasks_.begin()->first -
                                            SteadyClock::now());
      if (left > absl::ZeroDuration()) {
        mutex_.AwaitWithTimeout(absl::Condition(this, &Pacer::HasNews), left);
      }
      if (stopping_) return;
      if (tasks_.empty() || tasks_.begin()->first > SteadyClock::now()) {
        continue;
      }
      task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
    }
    task();
  }
}

}  // namespace lockstep::bench
