#include "common/timer_thread.h"

#include <pthread.h>

namespace lockstep {

TimerThread::TimerThread() : thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "timers");
}

TimerThread::~TimerThread() { Stop(); }

void TimerThread::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

uint64_t TimerThread::At(Clock::time_point time, std::function<void()> call) {
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t id = ++last_id_;
  times_.emplace(id, time);
  const auto at = calls_.emplace(std::pair(time, id), std::move(call)).first;
  if (at == calls_.begin()) changed_.notify_one();
  return id;
}

void TimerThread::Cancel(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto at = times_.find(id);
  if (at == times_.end()) return;
  calls_.erase({at->second, id});
  times_.erase(at);
}

void TimerThread::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_) {
    if (calls_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto next = calls_.begin();
    const Clock::time_point time = next->first.first;
    if (time > Clock::now()) {
      changed_.wait_until(lock, time);
      continue;
    }
    const std::function<void()> call = std::move(next->second);
    times_.erase(next->first.second);
    calls_.erase(next);
    lock.unlock();
    call();
    lock.lock();
  }
}

}  // namespace lockstep
