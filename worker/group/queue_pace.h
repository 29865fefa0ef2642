#pragma once

#include <absl/time/time.h>

#include <chrono>
#include <cstdint>

namespace lockstep {

// How fast requests have left the queue lately, for the hint in a refusal. Only
// the time in which some waited counts. No plan sees it.
//
//   pace.Begin(now);              // the queue is empty no more
//   pace.Left(num_tokens, now);   // at each that leaves it
//   pace.TimeForRequests(3);
//
// Single-threaded.
class QueuePace {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr absl::Duration kLeast = absl::Milliseconds(100);
  static constexpr absl::Duration kMost = absl::Seconds(30);
  static constexpr absl::Duration kUnknown = absl::Seconds(1);

  void Begin(Clock::time_point now) { last_ = now; }
  void Left(int64_t tokens, Clock::time_point now);

  // In which so many will have left, from kLeast to kMost; kUnknown before the
  // first has.
  absl::Duration TimeForRequests(int64_t requests) const;
  absl::Duration TimeForTokens(int64_t tokens) const;

 private:
  absl::Duration Time(double amount, double left) const;

  // Sums in which the latest weighs most.
  double seconds_ = 0;
  double requests_ = 0;
  double tokens_ = 0;
  Clock::time_point last_;
};

}  // namespace lockstep
