#pragma once

#include <absl/status/status.h>

#include "worker/engine/engine.h"

namespace lockstep {

// An engine whose device is the host: it computes a step when it is asked for
// the result. One step at a time, whose plan stays as it is until then.
class SynchronousEngine : public Engine {
 public:
  int max_steps_in_flight() const final { return 1; }

  absl::Status Launch(const StepPlan& plan) final {
    plan_ = &plan;
    return absl::OkStatus();
  }
  absl::Status Retire(StepResult* result) final {
    return Execute(*plan_, result);
  }

  absl::Status Execute(const StepPlan& plan, StepResult* result) override = 0;

 private:
  const StepPlan* plan_ = nullptr;  // launched last
};

}  // namespace lockstep
