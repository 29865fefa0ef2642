#include "worker/group/queue_pace.h"

#include <algorithm>

namespace lockstep {
namespace {

// Of the sums, at each request: about the last ten count.
constexpr double kKept = 0.9;

}  // namespace

void QueuePace::Left(int64_t tokens, Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - last_).count();
  seconds_ = kKept * seconds_ + seconds;
  requests_ = kKept * requests_ + 1;
  tokens_ = kKept * tokens_ + static_cast<double>(tokens);
  last_ = now;
}

absl::Duration QueuePace::TimeForRequests(int64_t requests) const {
  return Time(static_cast<double>(requests), requests_);
}

absl::Duration QueuePace::TimeForTokens(int64_t tokens) const {
  return Time(static_cast<double>(tokens), tokens_);
}

absl::Duration QueuePace::Time(double amount, double left) const {
  if (left == 0) return kUnknown;
  return std::clamp(absl::Seconds(seconds_ / left * amount), kLeast, kMost);
}

}  // namespace lockstep
