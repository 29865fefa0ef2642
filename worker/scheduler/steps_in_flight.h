#pragma once

#include <vector>

#include "worker/core/step_plan.h"
#include "worker/scheduler/scheduled_sequence.h"

namespace lockstep {

struct PlannedStep {
  StepPlan plan;
  // Whose the plan's spans are; null: what the span produces is thrown away.
  std::vector<ScheduledSequence*> sequences;
  // Some sequence's next span needs what this step samples on the host, or the
  // host makes something of this step that the device can not.
  bool is_awaited = false;
};

// The steps that were planned and are not committed yet, in order.
//
//   PlannedStep& step = steps.Add();
//   steps.oldest();  …  steps.RemoveOldest();
//
// Their buffers are reused. Single-threaded.
class StepsInFlight {
 public:
  // Room for so many.
  explicit StepsInFlight(int most) : ring_(most) {}

  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == static_cast<int>(ring_.size()); }
  int size() const { return size_; }

  // A step without spans. REQUIRES: !full().
  PlannedStep& Add();

  // REQUIRES: !empty().
  PlannedStep& oldest() { return ring_[first_]; }
  const PlannedStep& oldest() const { return ring_[first_]; }
  const PlannedStep& newest() const { return ring_[IndexOf(size_ - 1)]; }
  void RemoveOldest();

  // What `scheduled`, which loses its pages or ends, has in flight is thrown
  // away.
  void Forget(ScheduledSequence* scheduled);

 private:
  int IndexOf(int place) const {
    return (first_ + place) % static_cast<int>(ring_.size());
  }

  std::vector<PlannedStep> ring_;
  int first_ = 0;
  int size_ = 0;
};

}  // namespace lockstep
