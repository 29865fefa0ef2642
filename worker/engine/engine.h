#pragma once

#include <absl/status/status.h>

#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"

namespace lockstep {

// Executes plans on a rank's device: builds the batch, runs the model, samples.
// Called by the step thread alone. An error means the rank can not go on.
class Engine {
 public:
  virtual ~Engine() = default;

  // Fills one entry of `result` for each span of `plan`. `result` is reused
  // from step to step. Empty plans are not sent here.
  virtual absl::Status Execute(const StepPlan& plan, StepResult* result) = 0;
};

}  // namespace lockstep
