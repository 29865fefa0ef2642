#pragma once

#include <absl/time/time.h>

namespace lockstep {

// Whether a group should get requests, judged by how those it got ended.
//
//   closed ──5 failures in a row, or half of 20, in 10 s──▶ open
//   open ──after 10 s, doubling to 60 s──▶ half-open: one request, the probe
//   half-open ──it fails──▶ open; any success, from any state ──▶ closed
//
// What a client did wrong, or gave up, is neither success nor failure. Knows no
// clock: times are given, and do not go back. Not thread-safe.
class CircuitBreaker {
 public:
  struct Options {
    int failures_in_a_row = 5;
    int least_calls = 20;  // to judge by the part of them that failed
    double failed_part = 0.5;
    absl::Duration window = absl::Seconds(10);
    absl::Duration first_pause = absl::Seconds(10);
    absl::Duration longest_pause = absl::Seconds(60);
  };

  enum class State { kClosed, kHalfOpen, kOpen };

  explicit CircuitBreaker(const Options& options) : options_(options) {}

  bool Allows(absl::Time now) const;

  // Of each request that goes to the group, allowed or not. True: it is the
  // probe.
  bool OnStart(absl::Time now);
  void OnSuccess(absl::Time now);
  void OnFailure(absl::Time now);
  // It ended with neither.
  void OnProbeGivenUp() { probes_ = false; }

  // The group's processes are new.
  void Reset() { *this = CircuitBreaker(options_); }

  State state(absl::Time now) const {
    if (!is_open()) return State::kClosed;
    return now < open_until_ ? State::kOpen : State::kHalfOpen;
  }
  bool is_open() const { return open_until_ != absl::InfinitePast(); }

 private:
  bool ShouldOpen() const;
  void Roll(absl::Time now);  // into a new window, when it is time

  Options options_;
  absl::Time window_begin_ = absl::InfinitePast();
  int calls_ = 0;     // that ended in the window
  int failures_ = 0;  // of them
  int in_a_row_ = 0;
  absl::Time open_until_ = absl::InfinitePast();  // past: closed
  absl::Duration pause_ = absl::ZeroDuration();   // the last one
  bool probes_ = false;
};

}  // namespace lockstep
