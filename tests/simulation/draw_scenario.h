#pragma once

#include <cstdint>

#include "tests/simulation/scenario.pb.h"

namespace lockstep::testing {

// Random traffic on random limits, without a fault: requests with shared
// beginnings, of all priorities and several choices, few pages, aborts in every
// state, twice, and of nobody. A function of the seed alone, on every machine.
Scenario DrawScenario(uint64_t seed);

// The same, and a fault of `kind` in one of its followers.
Scenario DrawFaultyScenario(Fault::Kind kind, uint64_t seed);

// `scenario` with two steps in flight. Some of its requests have a grammar, or
// want log-probabilities.
Scenario Overlapped(Scenario scenario);

// A short one of these, for its leader alone. In one of four the engine fails.
Scenario DrawOverlapScenario(uint64_t seed);

}  // namespace lockstep::testing
