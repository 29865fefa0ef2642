#include "worker/scheduler/scheduler_state.h"

namespace lockstep {

void SchedulerState::Finish(ScheduledSequence* scheduled,
                            v1::FinishReason reason,
                            std::optional<uint32_t> stop_token_id) {
  const SequenceId id = scheduled->id();
  if (reason == v1::NOT_FINITE) {
    ++not_finite;
    pages.Discard(*scheduled);
  } else if (scheduled->state == ScheduledSequence::State::kRunning) {
    pages.Release(*scheduled);
  }
  steps.Forget(scheduled);
  table.Remove(scheduled);
  sink->OnFinish(id, reason, stop_token_id);
}

void SchedulerState::Preempt(ScheduledSequence* scheduled) {
  pages.Release(*scheduled);
  steps.Forget(scheduled);
  table.Requeue(scheduled);
  ++preemptions;
}

}  // namespace lockstep
