#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/core/output_sink.h"
#include "worker/core/step_plan.h"
#include "worker/scheduler/scheduled_sequence.h"
#include "worker/scheduler/scheduler_options.h"
#include "worker/scheduler/sequence_pages.h"
#include "worker/scheduler/sequence_table.h"

namespace lockstep {

// What intake, planner and commit work on, and the two ways in which a
// sequence leaves the running ones.
struct SchedulerState {
  SchedulerState(const SchedulerOptions& options, OutputSink* sink)
      : options(options),
        sink(sink),
        pages(options.num_pages, options.page_size) {}

  // Its pages are cached or free, the sink hears of it, `scheduled` is gone.
  void Finish(ScheduledSequence* scheduled, v1::FinishReason reason,
              std::optional<uint32_t> stop_token_id);

  // Its pages are cached or free; it waits again, with what it generated.
  void Preempt(ScheduledSequence* scheduled);

  const SchedulerOptions options;
  OutputSink* const sink;
  SequencePages pages;
  SequenceTable table;
  uint64_t last_request = 0;  // the number that came last
  uint64_t preemptions = 0;

  // The step planned last, and whose its spans are. The sequences are valid
  // until the step is committed.
  StepPlan plan;
  std::vector<ScheduledSequence*> planned;
};

}  // namespace lockstep
