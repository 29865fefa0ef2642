#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tests/simulation/scenario.pb.h"
#include "tests/simulation/simulation.h"

namespace lockstep::testing {

// A scenario that failed, and how.
struct Failure {
  Scenario scenario;
  absl::Status why;
};

// What is done with a scenario: Simulate, or another one with its contract.
using Simulator = absl::Status (*)(const Scenario& scenario, Totals* totals);

// Simulates one in a child process, so that it may crash.
absl::Status SimulateInChild(const Scenario& scenario,
                             Simulator simulate = Simulate);

// Simulates the scenarios that `draw` makes of the seeds first_seed,
// first_seed + 1, …, on two cores, until they have come to `rank_steps` steps
// over all ranks. The first that fails ends it.
std::optional<Failure> Explore(
    uint64_t first_seed, uint64_t rank_steps,
    const std::function<Scenario(uint64_t seed)>& draw, Totals* totals,
    Simulator simulate = Simulate);

// The smallest scenario that still fails, and how to repeat it, for people.
std::string ShrinkAndDescribe(const Failure& failure,
                              Simulator simulate = Simulate);

}  // namespace lockstep::testing
