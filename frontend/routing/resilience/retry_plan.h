#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstdint>

namespace lockstep {

// What the failure of a request at one group says.
enum class FailureKind {
  kFinal,    // another group would say the same, or nobody waits any more
  kFull,     // this group has too much to do to take it
  kRefused,  // this group did not take it: it comes or goes
  kLost,     // this group took it and is gone
  kSilent,   // this group does not go on
};

// `was_accepted`: the group had said so.
FailureKind KindOf(const absl::Status& status, bool was_accepted);

// Decides whether one request is tried again, and when. Before its first token
// it has two more tries, each at another group where there is one. After it the
// client holds a part of the answer, so as long as there is a group that could
// go on it is tried again; but a request that loses three groups in a row
// without a token in between may be what ends them, and is given up. With a
// token or without, it waits a moment for a group to come, where none is there
// or those that are refuse it as they come or go.
//
// Knows no clock and no random number: times are given, delays are a function
// of the seed. Not thread-safe.
class RetryPlan {
 public:
  struct Options {
    int max_retries = 2;  // before the first token
    int max_losses = 2;   // after it, without another
    absl::Duration first_delay = absl::Milliseconds(50);  // doubling to
    absl::Duration longest_delay = absl::Seconds(2);
    // How long an answer that has begun waits for a group that is there and
    // does not take it.
    absl::Duration refusal_wait = absl::Seconds(120);
    // And any request for one to be there at all.
    absl::Duration group_wait = absl::Seconds(5);
  };

  RetryPlan(const Options& options, uint64_t seed)
      : options_(options), seed_(seed) {}

  // A token came.
  void OnToken();
  bool has_token() const { return has_token_; }

  // An attempt failed: whether there may be another.
  bool OnFailure(FailureKind kind, absl::Time now);

  // No group takes the request: until when to ask again; in the past: no more.
  // `is_there`: there is one, which has been asked.
  absl::Time WaitsUntil(bool is_there, absl::Time now);

  // From a failure, or from having found no group, to the next attempt: drawn
  // evenly from nothing to a bound that doubles each time.
  absl::Duration NextDelay();

 private:
  const Options options_;
  const uint64_t seed_;
  bool has_token_ = false;
  int retries_ = 0;
  FailureKind last_failure_ = FailureKind::kFinal;
  // Since the last token:
  int losses_ = 0;
  int delays_ = 0;
  absl::Time failing_since_ = absl::InfiniteFuture();
};

}  // namespace lockstep
