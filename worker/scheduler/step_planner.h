#pragma once

#include "worker/scheduler/scheduler_state.h"

namespace lockstep {

// Fills `state->plan` (but for step and digest) and `state->planned`.
//
// Decoding sequences take one token each; preemption, backwards by precedence,
// makes room where pages have run out. What is left of the budget goes to
// prefill chunks by precedence, of running and of newly admitted sequences
// alike; the first that can not be admitted holds back all behind it.
//
// Some running sequence always goes on: the first by precedence is never
// preempted, and when it is alone every page is free or can be.
void PlanStep(SchedulerState* state);

}  // namespace lockstep
