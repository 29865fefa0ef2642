#pragma once

#include <absl/status/status.h>

#include "tests/simulation/scenario.pb.h"

namespace lockstep::testing {

// Runs the leader of a scenario without overlap and, as the scenario says, with
// it. INTERNAL unless every choice gets the same tokens and the same end; of
// one that was aborted, or when a failing call ended the rank, what it was told
// is the beginning of them. Adds to `totals` what the second did. A pure
// function of `scenario`; a CHECK of the code under test ends the process.
absl::Status SimulateBothWays(const Scenario& scenario, Totals* totals);

}  // namespace lockstep::testing
