#pragma once

#include <absl/status/status.h>

#include "proto/group.pb.h"
#include "worker/scheduler/scheduler_state.h"

namespace lockstep {

// Takes requests and aborts into `state`, between plans.
//
// INVALID_ARGUMENT, and nothing changed, for a request that no correct leader
// sends.
absl::Status ApplyAdd(const v1::AddRequest& add, SchedulerState* state);

// Unknown requests and choices are those that ended meanwhile: no error.
void ApplyAbort(const v1::AbortSequences& abort, SchedulerState* state);

}  // namespace lockstep
