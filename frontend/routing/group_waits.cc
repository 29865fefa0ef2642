#include "frontend/routing/group_waits.h"

#include <utility>

#include "frontend/routing/routing_clock.h"

namespace lockstep {

uint64_t GroupWaits::Add(absl::Time until, std::function<void()> call) {
  absl::MutexLock lock(&mutex_);
  const uint64_t id = ++last_id_;
  const uint64_t timer =
      timers_->At(ToTimerClock(until), [this, id] { OnTime(id); });
  waits_.emplace(id, Wait{timer, std::move(call)});
  return id;
}

void GroupWaits::OnTime(uint64_t id) {
  Waits::node_type over;
  {
    absl::MutexLock lock(&mutex_);
    over = waits_.extract(id);
  }
  if (!over.empty()) over.mapped().call();
}

void GroupWaits::End(uint64_t id) {
  Waits::node_type over;
  {
    absl::MutexLock lock(&mutex_);
    over = waits_.extract(id);
  }
  if (!over.empty()) CallSoon(std::move(over.mapped()));
}

void GroupWaits::EndAll() {
  Waits over;
  {
    absl::MutexLock lock(&mutex_);
    over.swap(waits_);
  }
  for (auto& [id, wait] : over) CallSoon(std::move(wait));
}

void GroupWaits::CallSoon(Wait wait) {
  timers_->Cancel(wait.timer);
  timers_->At(TimerThread::Clock::now(), std::move(wait.call));
}

size_t GroupWaits::number() const {
  absl::MutexLock lock(&mutex_);
  return waits_.size();
}

}  // namespace lockstep
