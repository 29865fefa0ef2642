#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <memory>

#include "proto/group.pb.h"
#include "worker/core/output_sink.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/scheduler/scheduler_options.h"

namespace lockstep {

struct SchedulerStats {
  int running_sequences = 0;
  int waiting_sequences = 0;
  int waiting_tokens = 0;  // that wait to be computed, of waiting sequences
  int free_pages = 0;
  int cached_pages = 0;  // held by the prefix cache alone
  int total_pages = 0;
  uint64_t step = 0;
  uint64_t preemptions = 0;
  uint64_t not_finite = 0;  // sequences that ended so: see NOT_FINITE
};

// Decides what each step computes. A pure function of the options, the messages
// and the results it was given: no clock, no randomness, no address, no hash
// order. Single-threaded, never blocks, talks to no device.
//
//   scheduler.Apply(message);                 // those of the frame, in order
//   const StepPlan& plan = scheduler.Plan();
//   engine.Launch(plan);
//   while (scheduler.MustCommit()) {
//     engine.Retire(&result);                 // of scheduler.oldest()
//     scheduler.Commit(result);
//   }
//
// With options.steps_in_flight of 1 each step is committed at once.
//
// Requests reach it validated: a message that could not come from a correct
// leader is an error that ends the rank.
class Scheduler {
 public:
  // `sink` must outlive this.
  // REQUIRES: ValidateSchedulerOptions(options) is OK.
  Scheduler(const SchedulerOptions& options, OutputSink* sink);
  ~Scheduler();

  // Add and abort; `stop` is the step loop's. Not while MustCommit().
  // INVALID_ARGUMENT, and nothing changed, for what no correct leader sends.
  absl::Status Apply(const v1::RankMessage& message);

  // Whether there is a sequence: then a plan made now would have work in it,
  // unless all wait for steps in flight.
  bool HasWork() const;

  // The next step. Valid until its Commit, which every plan needs, an empty one
  // too. Not while MustCommit().
  const StepPlan& Plan();

  // Whether the oldest step in flight is to be committed before anything else:
  // there are as many as there may be, or the next plan could not be made
  // without it.
  bool MustCommit() const;

  // The oldest step in flight; null: there is none.
  const StepPlan* oldest() const;

  // The results of oldest().
  void Commit(const StepResult& result);

  SchedulerStats stats() const;

  // free + cached + held + kept for steps in flight == all, no page twice, no
  // lock that nobody holds. INTERNAL if not.
  absl::Status CheckConservation() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
