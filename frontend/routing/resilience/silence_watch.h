#pragma once

#include <absl/time/time.h>

namespace lockstep {

// Whether a group has been silent for too long, of one attempt: until its first
// token, then from one message to the next. Counts only while the gateway
// reads: a client that lags behind holds up the group, not the other way round.
//
// Knows no clock: times are given. Not thread-safe.
class SilenceWatch {
 public:
  struct Limits {
    absl::Duration first_token = absl::Seconds(120);
    absl::Duration between_tokens = absl::Seconds(60);
  };

  explicit SilenceWatch(const Limits& limits) : limits_(limits) {}

  void OnAttempt(absl::Time now) {
    since_ = now;
    has_token_ = false;
    reads_ = true;
  }
  void OnMessage(bool has_token) {
    has_token_ = has_token_ || has_token;
    reads_ = false;
  }
  void OnRead(absl::Time now) {
    if (has_token_) since_ = now;
    reads_ = true;
  }

  // When to look again; looking is needed no sooner.
  absl::Time NextLook(absl::Time now) const {
    return reads_ ? since_ + limit() : now + limits_.between_tokens;
  }
  bool IsTooLong(absl::Time now) const {
    return reads_ && now - since_ >= limit();
  }

  bool has_token() const { return has_token_; }
  absl::Duration limit() const {
    return has_token_ ? limits_.between_tokens : limits_.first_token;
  }

 private:
  const Limits limits_;
  absl::Time since_ = absl::InfiniteFuture();
  bool has_token_ = false;
  bool reads_ = false;
};

}  // namespace lockstep
