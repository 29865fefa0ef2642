#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "proto/sampling.pb.h"
#include "tests/testing/async_device/device_memory.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"

namespace lockstep::testing {

// A span as it is launched: all that it takes, copied.
struct DeviceJob {
  SequenceId id;
  SequenceSpan span;  // its sequence is not looked at
  v1::ResolvedSampling sampling;
  v1::ResolvedEmbedding embedding;
  std::vector<int32_t> page_table;
  std::vector<uint32_t> tokens;  // of the span; the last may be unknown
  std::vector<uint32_t> scored;  // behind span.prompt_logits_begin and up
  int after = -1;  // the job of the step before that this one reads from

  bool has_run = false;
  SpanResult result;
};

// A launched step of a device.
struct DeviceStep {
  std::vector<DeviceJob> jobs;
  size_t left = 0;                     // jobs that have not run
  bool needs_host = false;             // some span of it: see NeedsHost
  std::shared_ptr<DeviceStep> before;  // until this one has retired
  absl::Status status;                 // the first error
};

// Copies a plan. `before` was launched before it and may be null. INTERNAL
// where a span takes from `before` what it does not have.
absl::StatusOr<std::shared_ptr<DeviceStep>> MakeDeviceStep(
    const StepPlan& plan, std::shared_ptr<DeviceStep> before);

// Whether `job` of `step` may run next.
bool CanRun(const DeviceStep& step, const DeviceJob& job);

// Fills `job->result`, but not `has_run`. REQUIRES: CanRun(step, *job).
absl::Status RunJob(const DeviceStep& step, uint32_t vocabulary_size,
                    DeviceMemory* memory, DeviceJob* job);

}  // namespace lockstep::testing
