#pragma once

#include <vector>

#include "worker/scheduler/scheduler_state.h"

namespace lockstep {

// Fills a new step of `state->steps` (but for its number and digest).
//
//   StepPlanner planner(&state);
//   PlannedStep& step = planner.Plan();
//
// Decoding sequences take one token each; preemption, backwards by precedence,
// makes room where pages have run out and none are kept for a step in flight.
// What is left of the budget goes to prefill chunks by precedence, of running
// and of newly admitted sequences alike; the first that can not be admitted
// holds back all behind it.
//
// Some running sequence always goes on: the first by precedence is never
// preempted, and when it is alone every page is free or can be.
class StepPlanner {
 public:
  // `state` must outlive this.
  explicit StepPlanner(SchedulerState* state) : state_(*state) {}

  PlannedStep& Plan();

 private:
  int tokens_left() const;
  int rows_left() const;

  void PlanDecodes();
  // False if `scheduled`, then the last one, had to go itself, or waits for
  // pages of a step in flight.
  bool MakeRoomToGrow(ScheduledSequence* scheduled);

  void PlanPrefills();
  bool Admit(ScheduledSequence* scheduled);
  void AddChunk(ScheduledSequence* scheduled);

  void AddSpan(ScheduledSequence* scheduled, const SequenceSpan& span);

  SchedulerState& state_;
  PlannedStep* step_ = nullptr;                 // that is planned now
  std::vector<ScheduledSequence*> prefilling_;  // scratch
};

}  // namespace lockstep
