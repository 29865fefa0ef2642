#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <array>
#include <cstdint>
#include <string>

#include "tests/chaos/client.h"
#include "tests/chaos/vital_signs.h"

namespace lockstep::testing {

struct SoakOptions {
  std::string worker;  // the binary
  std::string model;   // a file
  int size = 2;        // ranks
  int clients = 12;
  absl::Duration warm_up = absl::Seconds(15);
  absl::Duration duration = absl::Minutes(2);
  uint64_t seed = 1;
};

struct SoakReport {
  std::array<int64_t, Client::kNumEnds> ends = {};  // by Client::End
  VitalSigns before;                                // after the warm-up
  VitalSigns after;

  std::string ToString() const;
};

// A group under mixed traffic: short and long prompts, shared ones, several
// choices, log-probabilities, priorities, cancelled calls, deadlines and
// readers that stop reading. Every call must have one end that its options
// explain, and afterwards the group holds no more than it did before.
//
// The sentence of an error says what did not hold, with the ranks' output.
absl::StatusOr<SoakReport> Soak(const SoakOptions& options);

}  // namespace lockstep::testing
