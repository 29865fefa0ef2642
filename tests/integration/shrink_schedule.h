#pragma once

#include <functional>

#include "tests/integration/schedule.h"

namespace lockstep::testing {

// A schedule that still `fails`, from which no mate can be left out and no
// choice be made plain without that it passes. REQUIRES: fails(schedule).
Schedule Shrink(Schedule schedule,
                const std::function<bool(const Schedule&)>& fails);

}  // namespace lockstep::testing
