#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>

#include "common/digest.h"
#include "proto/group.pb.h"
#include "worker/core/step_result.h"
#include "worker/engine/engine.h"
#include "worker/grammar/grammar_store.h"
#include "worker/group/frame_source.h"
#include "worker/group/step_history.h"
#include "worker/group/step_progress.h"
#include "worker/runtime/step_meter.h"
#include "worker/runtime/step_watchdog.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {

// What every rank does, step after step, on one thread: the next frame, apply
// its messages, plan, agree on the plan, launch, then commit and tell: this
// step, or with two in flight the one before (docs/overlap.md).
//
//   StepLoop loop({.source = …, .scheduler = …, .engine = …, …});
//   absl::Status status = loop.Run();
//
// An idle group blocks on the next frame.
class StepLoop {
 public:
  // All must outlive the loop.
  struct Parts {
    FrameSource* source = nullptr;
    Scheduler* scheduler = nullptr;
    Engine* engine = nullptr;
    StepHistory* history = nullptr;
    StepWatchdog* watchdog = nullptr;
    StepProgress* progress = nullptr;  // may be null: nobody asks
    StepMeter* meter = nullptr;        // likewise
    GrammarStore* grammars = nullptr;  // may be null: no leader names one
    // The last part of each step, of a failed one too, on the step thread: the
    // watchdog and the meter see it. May be empty.
    std::function<void(const SchedulerStats&)> on_step_end;
  };

  explicit StepLoop(const Parts& parts) : parts_(parts) {}

  // Returns OK after the frame with the stop message, else the error that ended
  // this rank: the group's first failure, this rank's digest, its engine, or a
  // page that was lost.
  absl::Status Run();

  // After an error: what it is of.
  v1::FailureKind failure_kind() const { return failure_kind_; }

 private:
  // True after the stop message.
  absl::StatusOr<bool> Step();
  absl::StatusOr<bool> ApplyMessages();
  absl::Status Apply(const v1::RankMessage& message);
  absl::Status Agree(const StepPlan& plan);
  absl::Status Launch(const StepPlan& plan);
  // The oldest step in flight.
  absl::Status Commit();
  // Keeps what an error is of. One of an earlier step than the frame's says so.
  absl::Status OfEngine(uint64_t step, const absl::Status& status);
  absl::Status CheckPages();
  void Enter(uint64_t step, v1::StepStage stage);

  const Parts parts_;
  Frame frame_;
  v1::RankMessage message_;
  DigestBuilder digest_;
  StepResult result_;
  v1::FailureKind failure_kind_ = v1::FAILURE_KIND_UNSPECIFIED;
};

}  // namespace lockstep
