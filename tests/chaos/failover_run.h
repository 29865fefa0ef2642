#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <string>

#include "tests/chaos/fleet.h"

namespace lockstep::testing {

struct FailoverOptions {
  Fleet::Options fleet;
  int streams = 64;      // at once
  int max_tokens = 400;  // of an answer
  absl::Duration duration = absl::Seconds(60);
  absl::Duration kill_every = absl::Seconds(2);
  uint64_t seed = 1;  // of the victims and the order of requests
};

struct FailoverReport {
  int kills = 0;
  int answers = 0;    // all equal to the undisturbed ones
  int failovers = 0;  // within them

  std::string ToString() const;
};

// Asks for answers while nothing disturbs; then for the same ones, on many
// streams, while a group is killed every few seconds and started again. An
// error, or an answer that differs in anything that a client can see, is what
// it returns. Some group always lives.
absl::StatusOr<FailoverReport> RunFailover(const FailoverOptions& options);

}  // namespace lockstep::testing
