#pragma once

#include <absl/status/status.h>

#include "tests/simulation/scenario.pb.h"

namespace lockstep::testing {

// Runs all ranks of a scenario: real step loops, schedulers, digests and frame
// codec, fake engines, bytes in memory for a network. The leader goes first;
// then each follower reads what it sent. As nothing a follower does can reach
// another rank but by its failure, that is what happens when they run at once.
//
// INTERNAL, naming rank and step, where
//   - a rank without a fault does not plan, execute and tell what the leader
//     does, or ends otherwise than the leader,
//   - a rank loses a page, a lock or a terminal event, tells a stream what it
//     does not get alone, or lets a request overtake one that was due earlier,
//   - a rank that was told something else executes that step, or one with
//     another configuration executes a plan that is not the leader's.
//
// Adds to `totals`. A pure function of `scenario`; a CHECK of the code under
// test ends the process.
absl::Status Simulate(const Scenario& scenario, Totals* totals);

}  // namespace lockstep::testing
