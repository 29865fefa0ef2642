#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <functional>

#include "worker/core/output_sink.h"
#include "worker/engine/engine.h"
#include "worker/group/frame_source.h"
#include "worker/group/group_failure.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {

// What a rank's steps need; all outlive RunRankLoop.
struct RankLoopParts {
  int rank = 0;
  SchedulerOptions scheduler;
  FrameSource* source = nullptr;
  Engine* engine = nullptr;
  OutputSink* sink = nullptr;
  GroupFailure* failure = nullptr;
  absl::Duration step_timeout;
  std::function<void(const SchedulerStats&)> on_step_end;  // may be empty
};

// Runs a rank's steps on this thread until the stop message: OK. An error of
// this rank, or a step that takes longer than step_timeout, is reported to
// `failure`; then, as at any failure of the group, the last steps are written
// to the log and the first cause is returned.
absl::Status RunRankLoop(const RankLoopParts& parts);

}  // namespace lockstep
