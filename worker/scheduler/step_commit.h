#pragma once

#include "worker/core/step_result.h"
#include "worker/scheduler/scheduler_state.h"

namespace lockstep {

// Takes what the oldest step in flight produced: progress, prompt
// log-probabilities, new tokens and the ends of sequences, in the plan's order.
void CommitStep(const StepResult& result, SchedulerState* state);

}  // namespace lockstep
