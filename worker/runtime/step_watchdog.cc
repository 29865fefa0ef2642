#include "worker/runtime/step_watchdog.h"

#include <glog/logging.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

constexpr int kLooks = 8;  // within the limit
constexpr absl::Duration kLongestPause = absl::Hours(1);

}  // namespace

StepWatchdog::StepWatchdog(absl::Duration limit,
                           std::function<void(uint64_t step)> overdue)
    : overdue_(std::move(overdue)),
      limit_(limit),
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

void StepWatchdog::SetLimitByWarmUp(const WarmUp& warm_up) {
  warm_up_ = warm_up;
  if (warm_up_.steps == 0) SetLimit(warm_up_.least);
}

void StepWatchdog::BeginStep(uint64_t step) {
  if (warm_up_.steps > 0) begin_ = Clock::now();
  running_.store(step, std::memory_order_relaxed);
}

void StepWatchdog::EndStep() {
  running_.store(0, std::memory_order_relaxed);
  if (warm_up_.steps == 0) return;
  slowest_ = std::max(slowest_, absl::FromChrono(Clock::now() - begin_));
  if (--warm_up_.steps > 0) return;
  const absl::Duration limit = std::max(
      warm_up_.least, std::min(warm_up_.most, warm_up_.multiple * slowest_));
  LOG(INFO) << "a step may take " << limit
            << "; the slowest of the warm-up took " << slowest_;
  SetLimit(limit);
}

absl::Duration StepWatchdog::limit() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return limit_;
}

void StepWatchdog::SetLimit(absl::Duration limit) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    limit_ = limit;
    has_changed_ = true;
  }
  changed_.notify_one();
}

void StepWatchdog::Watch() {
  uint64_t seen = 0;
  uint64_t told = 0;
  absl::Duration elapsed;  // with `seen` running
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    const absl::Duration pause = std::min(limit_ / kLooks, kLongestPause);
    changed_.wait_for(lock, absl::ToChronoNanoseconds(pause),
                      [this] { return destroyed_ || has_changed_; });
    if (destroyed_) return;
    if (std::exchange(has_changed_, false)) continue;
    const uint64_t step = running_.load(std::memory_order_relaxed);
    elapsed = step == seen ? elapsed + pause : absl::ZeroDuration();
    seen = step;
    if (step == 0 || step == told || elapsed < limit_) continue;
    told = step;
    lock.unlock();
    overdue_(step);
    lock.lock();
  }
}

}  // namespace lockstep
