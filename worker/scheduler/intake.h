#pragma once

#include <absl/status/status.h>

#include "proto/group.pb.h"
#include "worker/scheduler/scheduler_state.h"

namespace lockstep {

// Takes requests and aborts into `state`. Not between a plan and its commit: an
// abort gives pages back at once.
//
// INVALID_ARGUMENT, and nothing changed, for a request that no correct leader
// sends.
absl::Status ApplyAdd(const v1::AddRequest& add, SchedulerState* state);

// Unknown requests and choices are those that ended meanwhile: no error.
void ApplyAbort(const v1::AbortSequences& abort, SchedulerState* state);

}  // namespace lockstep
