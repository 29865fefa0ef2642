#pragma once

#include <cstdint>
#include <optional>

#include "worker/core/output_sink.h"
#include "worker/scheduler/scheduled_sequence.h"
#include "worker/scheduler/scheduler_options.h"
#include "worker/scheduler/sequence_pages.h"
#include "worker/scheduler/sequence_table.h"
#include "worker/scheduler/steps_in_flight.h"

namespace lockstep {

// What intake, planner and commit work on, and the two ways in which a
// sequence leaves the running ones.
struct SchedulerState {
  SchedulerState(const SchedulerOptions& options, OutputSink* sink)
      : options(options),
        sink(sink),
        pages(options.num_pages, options.page_size),
        steps(options.steps_in_flight) {}

  // Both give its pages back, and what it has in flight is thrown away.
  // The sink hears of it, `scheduled` is gone. Of one that is NOT_FINITE nobody
  // gets the keys and values that nobody has yet, as they may be what is at
  // fault.
  void Finish(ScheduledSequence* scheduled, v1::FinishReason reason,
              std::optional<uint32_t> stop_token_id);

  // It waits again, with what it was told to have generated.
  void Preempt(ScheduledSequence* scheduled);

  const SchedulerOptions options;
  OutputSink* const sink;
  SequencePages pages;
  SequenceTable table;
  StepsInFlight steps;
  uint64_t last_step = 0;     // the one planned last
  uint64_t last_request = 0;  // the number that came last
  uint64_t preemptions = 0;
  uint64_t not_finite = 0;  // sequences that ended so
};

}  // namespace lockstep
