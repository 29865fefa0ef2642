#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "tests/simulation/routing/simulated_group.h"

namespace lockstep::testing {

struct RoutingRunOptions {
  std::string policy;
  int groups = 64;
  int gateways = 1;  // each knows only what went through it
  int64_t requests = 1'000'000;
  double dialogues_per_s = 180;  // that begin
  double think_s = 15;  // on average, between an answer and the next turn
  double report_interval_s = 0.2;
  uint64_t seed = 1;
  GroupModel model;
};

struct RoutingResult {
  double hit_rate = 0;       // of prompt tokens, those from the prefix cache
  double sequences = 0;      // of a group, on average
  double max_sequences = 0;  // of the one that has most, on average
  double ttft_p50_s = 0;
  double ttft_p99_s = 0;
};

// Dialogues (Sessions) at simulated groups (SimulatedGroup), sent there by the
// gateway's own Balancer and a policy. The same options give the same result.
absl::StatusOr<RoutingResult> RunRouting(const RoutingRunOptions& options);

}  // namespace lockstep::testing
