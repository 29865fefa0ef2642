#include "worker/step_health.h"

#include <algorithm>

#include "proto/group.pb.h"
#include "worker/runtime/rank_loop.h"

namespace lockstep {

HealthBoard::WorkLimits StepWorkLimits(absl::Duration step_timeout) {
  constexpr absl::Duration kReady = absl::Minutes(1);
  // Once a step is overdue, ranks take some heartbeats to find out whose fault
  // it is, and have a few seconds to leave.
  constexpr absl::Duration kLeastLive = absl::Minutes(1);
  if (step_timeout <= absl::ZeroDuration()) {
    return {.ready = kReady, .live = 2 * kMostStepTimeout};
  }
  return {.ready = std::min(kReady, step_timeout),
          .live = std::max(kLeastLive, 2 * step_timeout)};
}

absl::Duration StepAge::Overdue(Clock::time_point now) {
  const v1::Heartbeat place = progress_->Read();
  absl::MutexLock lock(&mutex_);
  if (place.stage() == v1::FINISHED || place.step() < first_step_) {
    seen_.reset();
    return absl::ZeroDuration();
  }
  if (!seen_.has_value() || seen_->step != place.step()) {
    seen_ = Seen{.step = place.step(), .since = now};
  }
  return absl::FromChrono(now - seen_->since);
}

}  // namespace lockstep
