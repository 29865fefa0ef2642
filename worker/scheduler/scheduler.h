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
};

// Decides what each step computes. A pure function of the options, the messages
// and the results it was given: no clock, no randomness, no address, no hash
// order. Single-threaded, never blocks, talks to no device.
//
//   scheduler.Apply(message);                 // those of the frame, in order
//   const StepPlan& plan = scheduler.Plan();
//   engine.Execute(plan, &result);
//   scheduler.Commit(result);
//
// Requests reach it validated: a message that could not come from a correct
// leader is an error that ends the rank.
class Scheduler {
 public:
  // `sink` must outlive this.
  // REQUIRES: ValidateSchedulerOptions(options) is OK.
  Scheduler(const SchedulerOptions& options, OutputSink* sink);
  ~Scheduler();

  // Add and abort; `stop` is the step loop's. Not between Plan and Commit.
  // INVALID_ARGUMENT, and nothing changed, for what no correct leader sends.
  absl::Status Apply(const v1::RankMessage& message);

  // Whether a plan made now would have work in it.
  bool HasWork() const;

  // The next step. Valid until Commit, which every Plan needs, an empty one
  // too.
  const StepPlan& Plan();

  void Commit(const StepResult& result);

  SchedulerStats stats() const;

  // free + cached + held == all, no page twice, no lock that nobody holds.
  // INTERNAL if not.
  absl::Status CheckConservation() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
