#pragma once

#include <absl/status/status.h>

#include "worker/scheduler/scheduler_state.h"

namespace lockstep {

// INTERNAL, naming a page, unless every page is exactly one of free, cached, or
// held by one running sequence, or kept for one step in flight, alone; every
// shared page of these is cached, and the locked pages of the cache are those
// that some of them holds.
absl::Status CheckConservation(const SchedulerState& state);

}  // namespace lockstep
