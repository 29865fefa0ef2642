#include "worker/group/step_progress.h"

#include <tuple>
#include <utility>

namespace lockstep {

void StepProgress::CountCollectives(std::function<int64_t()> count) {
  absl::MutexLock lock(&mutex_);
  count_collectives_ = std::move(count);
}

v1::Heartbeat StepProgress::Read() const {
  const uint64_t place = place_.load(std::memory_order_relaxed);
  v1::Heartbeat heartbeat;
  heartbeat.set_step(place / kStages);
  heartbeat.set_stage(static_cast<v1::StepStage>(place % kStages));
  heartbeat.set_overdue_step(overdue_step_.load(std::memory_order_relaxed));
  heartbeat.set_loaded(loaded_.load(std::memory_order_relaxed));
  absl::MutexLock lock(&mutex_);
  if (count_collectives_) heartbeat.set_collectives(count_collectives_());
  return heartbeat;
}

uint64_t FinishedStep(const v1::Heartbeat& heartbeat) {
  if (heartbeat.stage() == v1::FINISHED || heartbeat.step() == 0) {
    return heartbeat.step();
  }
  return heartbeat.step() - 1;
}

bool IsBehind(const v1::Heartbeat& a, const v1::Heartbeat& b) {
  const auto place = [](const v1::Heartbeat& heartbeat) {
    return std::make_tuple(heartbeat.step(), heartbeat.stage(),
                           heartbeat.collectives());
  };
  return place(a) < place(b);
}

}  // namespace lockstep
