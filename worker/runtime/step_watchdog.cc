#include "worker/runtime/step_watchdog.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

constexpr absl::Duration kLongestPause = absl::Hours(1);

}  // namespace

StepWatchdog::StepWatchdog(absl::Duration limit,
                           std::function<void(uint64_t step)> overdue)
    : limit_(limit),
      overdue_(std::move(overdue)),
      thread_([this] { Watch(); }) {
  pthread_setname_np(thread_.native_handle(), "watchdog");
}

StepWatchdog::~StepWatchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    destroyed_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StepWatchdog::BeginStep(uint64_t step) {
  begin_.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
  running_.store(step, std::memory_order_release);
}

void StepWatchdog::EndStep() { running_.store(0, std::memory_order_release); }

// Looks a few times within the limit, so that a step costs no wake-up.
void StepWatchdog::Watch() {
  const auto pause =
      absl::ToChronoNanoseconds(std::min(limit_ / 4, kLongestPause));
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, pause, [this] { return destroyed_; })) {
    const uint64_t step = running_.load(std::memory_order_acquire);
    const auto begin = begin_.load(std::memory_order_relaxed);
    const auto now = std::chrono::steady_clock::now();
    if (step == 0 || absl::FromChrono(now - begin) <= limit_) continue;
    lock.unlock();
    return overdue_(step);
  }
}

}  // namespace lockstep
