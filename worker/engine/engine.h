#pragma once

#include <absl/status/status.h>

#include "common/status_macros.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"

namespace lockstep {

// Executes plans on a rank's device: builds the batch, runs the model, samples.
//
//   engine->Launch(plan);     // while the step before may still run
//   engine->Retire(&result);  // of the oldest step launched
//
// Where the device works beside the host, two steps may be in flight, that is
// launched and not retired: see docs/overlap.md. Called by the step thread
// alone. An error means the rank can not go on; an engine may be destroyed with
// steps in flight.
class Engine {
 public:
  virtual ~Engine() = default;

  // 1, or 2 for a device that works beside the host.
  virtual int max_steps_in_flight() const = 0;

  // Begins a step; empty plans are not sent here. With two steps in flight all
  // that is needed of `plan` and its sequences is copied: they change, and
  // sequences end, before the step is retired.
  //
  // What a span reads of its own sequence, the step before has written: keys,
  // values, and the token where span.token_from says so. Spans of other
  // sequences share no page that either writes, so they may run in any order.
  virtual absl::Status Launch(const StepPlan& plan) = 0;

  // Waits for the oldest launched step, and fills one entry of `result` for
  // each of its spans. `result` is reused from step to step.
  virtual absl::Status Retire(StepResult* result) = 0;

  // A step from its beginning to its end. REQUIRES: none is in flight.
  virtual absl::Status Execute(const StepPlan& plan, StepResult* result) {
    LOCKSTEP_RETURN_IF_ERROR(Launch(plan));
    return Retire(result);
  }
};

}  // namespace lockstep
