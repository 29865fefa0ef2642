#pragma once

#include "proto/group.pb.h"
#include "worker/scheduler/scheduler_state.h"

namespace lockstep {

// Takes requests and aborts into `state`. A message that no correct leader
// sends is a CHECK. Not between a plan and its commit: an abort gives pages
// back at once.
void ApplyAdd(const v1::AddRequest& add, SchedulerState* state);

// Unknown requests and choices are those that ended meanwhile: no error.
void ApplyAbort(const v1::AbortSequences& abort, SchedulerState* state);

}  // namespace lockstep
