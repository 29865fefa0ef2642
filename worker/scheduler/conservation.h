#pragma once

#include <absl/status/status.h>

#include "worker/scheduler/scheduler_state.h"

namespace lockstep {

// INTERNAL, naming a page, unless every page is exactly one of free, cached, or
// held by one running sequence alone, and every shared page of a sequence is
// cached. When nothing runs, no page may be held.
absl::Status CheckConservation(const SchedulerState& state);

}  // namespace lockstep
