#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <functional>

#include "worker/collectives/collective.h"
#include "worker/core/output_sink.h"
#include "worker/engine/engine.h"
#include "worker/grammar/grammar_store.h"
#include "worker/group/frame_source.h"
#include "worker/group/group_failure.h"
#include "worker/group/step_progress.h"
#include "worker/runtime/step_meter.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {

inline constexpr int kWarmUpSteps = 2;
inline constexpr absl::Duration kWarmUpTimeout = absl::Minutes(5);

// The limit of steps where none is given: a step may take this many times the
// slowest of the warm-up, in which one token was computed, for each token that
// it may compute; never less than a minute, and never so long that clients of a
// group whose ranks wait for each other had to wait with them.
inline constexpr int kStepTimeoutMultiple = 4;
inline constexpr absl::Duration kLeastStepTimeout = absl::Minutes(1);
inline constexpr absl::Duration kMostStepTimeout = absl::Minutes(5);

// What a rank's steps need; all outlive RunRankLoop.
struct RankLoopParts {
  int rank = 0;
  SchedulerOptions scheduler;
  FrameSource* source = nullptr;
  Engine* engine = nullptr;
  OutputSink* sink = nullptr;
  GroupFailure* failure = nullptr;
  // Of a step after the warm-up; zero: derived from the warm-up.
  absl::Duration step_timeout;
  std::function<void(const SchedulerStats&)> on_step_end;  // may be empty
  // What heartbeats tell other ranks of this one, and where it says that a step
  // is overdue, so that the rank which the others wait for can be found. Null:
  // it is this one.
  StepProgress* progress = nullptr;
  // Whose calls are progress; outlives `progress`. May be null.
  const Collective* collective = nullptr;
  StepMeter* meter = nullptr;  // may be null
  // Those of the engine. Null: there are none.
  GrammarStore* grammars = nullptr;
  // The first steps of a group, which have at least kWarmUpTimeout.
  int warm_up_steps = kWarmUpSteps;
};

// Runs a rank's steps on this thread until the stop message: OK. An error of
// this rank, or a step that takes too long, is reported to `failure`; then, as
// at any failure of the group, the last steps are written to the log and the
// first cause is returned. They are written too when the step thread hangs and
// the process is ended.
absl::Status RunRankLoop(const RankLoopParts& parts);

}  // namespace lockstep
