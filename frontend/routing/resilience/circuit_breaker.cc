#include "frontend/routing/resilience/circuit_breaker.h"

#include <algorithm>

namespace lockstep {

bool CircuitBreaker::Allows(absl::Time now) const {
  return !is_open() || (now >= open_until_ && !probes_);
}

bool CircuitBreaker::OnStart(absl::Time now) {
  if (!is_open() || !Allows(now)) return false;
  probes_ = true;
  return true;
}

void CircuitBreaker::OnSuccess(absl::Time now) {
  if (is_open()) return Reset();
  Roll(now);
  ++calls_;
  in_a_row_ = 0;
}

void CircuitBreaker::OnFailure(absl::Time now) {
  const bool was_probe = probes_;
  probes_ = false;
  if (is_open() && !was_probe) return;  // it began before
  Roll(now);
  ++calls_;
  ++failures_;
  ++in_a_row_;
  if (!was_probe && !ShouldOpen()) return;
  pause_ = was_probe ? std::min(2 * pause_, options_.longest_pause)
                     : options_.first_pause;
  open_until_ = now + pause_;
}

bool CircuitBreaker::ShouldOpen() const {
  return in_a_row_ >= options_.failures_in_a_row ||
         (calls_ >= options_.least_calls &&
          failures_ >= options_.failed_part * calls_);
}

void CircuitBreaker::Roll(absl::Time now) {
  if (now - window_begin_ < options_.window) return;
  window_begin_ = now;
  calls_ = 0;
  failures_ = 0;
  in_a_row_ = 0;
}

}  // namespace lockstep
