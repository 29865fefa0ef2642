#pragma once

#include "tests/simulation/scenario.pb.h"

namespace lockstep::testing {

// Adds each number of `more`.
void AddTotals(const Totals& more, Totals* totals);

}  // namespace lockstep::testing
