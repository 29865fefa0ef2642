#include "worker/group/heartbeat_timer.h"

#include <utility>

namespace lockstep {
namespace {

constexpr int kLateIntervals = 3;

}  // namespace

HeartbeatTimer::HeartbeatTimer(boost::asio::io_context& context,
                               absl::Duration interval,
                               std::function<void()> beat)
    : interval_(interval), beat_(std::move(beat)), timer_(context) {}

void HeartbeatTimer::Start() {
  stopped_ = false;
  Wait();
}

void HeartbeatTimer::Wait() {
  due_ = Clock::now() + absl::ToChronoNanoseconds(interval_);
  timer_.expires_at(due_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || stopped_) return;
    const auto now = Clock::now();
    if (IsLate(now)) late_ = now;
    beat_();
    if (!stopped_) Wait();
  });
}

bool HeartbeatTimer::IsLate(Clock::time_point now) const {
  return absl::FromChrono(now - due_) > kLateIntervals * interval_;
}

bool HeartbeatTimer::WasLate(absl::Duration window) const {
  const auto now = Clock::now();
  if (IsLate(now)) return true;
  if (late_ == Clock::time_point::min()) return false;
  return absl::FromChrono(now - late_) < window;
}

}  // namespace lockstep
