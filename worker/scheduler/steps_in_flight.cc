#include "worker/scheduler/steps_in_flight.h"

#include <glog/logging.h>

#include <algorithm>

namespace lockstep {

PlannedStep& StepsInFlight::Add() {
  CHECK(!full());
  PlannedStep& step = ring_[IndexOf(size_++)];
  step.plan.spans.clear();
  step.plan.num_tokens = 0;
  step.plan.num_logits_rows = 0;
  step.sequences.clear();
  step.is_awaited = false;
  return step;
}

void StepsInFlight::RemoveOldest() {
  CHECK(!empty());
  first_ = IndexOf(1);
  --size_;
}

void StepsInFlight::Forget(ScheduledSequence* scheduled) {
  ScheduledSequence* const nobody = nullptr;
  for (int place = 0; place < size_; ++place) {
    auto& sequences = ring_[IndexOf(place)].sequences;
    std::replace(sequences.begin(), sequences.end(), scheduled, nobody);
  }
  scheduled->in_flight = {};
}

}  // namespace lockstep
