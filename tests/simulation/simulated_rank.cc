#include "tests/simulation/simulated_rank.h"

#include <absl/time/time.h>

#include "common/status_macros.h"
#include "tests/simulation/surroundings.h"
#include "tests/testing/fake_engine.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/engine/synchronous_engine.h"
#include "worker/group/step_history.h"
#include "worker/runtime/step_loop.h"
#include "worker/runtime/step_watchdog.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep::testing {
namespace {

SchedulerOptions OptionsOf(const Scenario& scenario, uint32_t rank) {
  const Limits& limits = scenario.limits();
  SchedulerOptions options = {.num_pages = limits.num_pages(),
                              .page_size = limits.page_size(),
                              .max_step_tokens = limits.max_step_tokens(),
                              .max_sequences = limits.max_sequences(),
                              .max_logits_rows = limits.max_logits_rows(),
                              .max_context = limits.max_context()};
  if (scenario.fault().rank() != rank) return options;
  switch (scenario.fault().kind()) {
    case Fault::OTHER_PAGE_SIZE:
      options.page_size = options.page_size < 256 ? options.page_size * 2 : 128;
      options.num_pages *= 2;
      break;
    case Fault::OTHER_NUM_PAGES:
      ++options.num_pages;
      break;
    case Fault::OTHER_STEP_TOKENS:
      ++options.max_step_tokens;
      break;
    default:
      break;
  }
  return options;
}

// FNV-1a (Fowler, Noll, Vo), over words.
class Hash {
 public:
  void Add(uint64_t word) { value_ = (value_ ^ word) * 0x100000001b3; }
  uint64_t value() const { return value_ ^ value_ >> 32; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

uint64_t HashPlan(const StepPlan& plan) {
  Hash hash;
  for (const SequenceSpan& span : plan.spans) {
    hash.Add(span.sequence->id().request);
    hash.Add(span.sequence->id().choice);
    hash.Add(span.begin);
    hash.Add(span.count);
    hash.Add(span.samples);
    for (const uint32_t token : span.sequence->tokens()) hash.Add(token);
    for (const int32_t page : span.sequence->pages()) hash.Add(page);
  }
  return hash.value();
}

// Ends the rank once something broke.
class StoppableSource final : public FrameSource {
 public:
  StoppableSource(FrameSource* source, const absl::Status* broken)
      : source_(*source), broken_(*broken) {}

  absl::Status Next(bool idle, Frame* frame) override {
    LOCKSTEP_RETURN_IF_ERROR(broken_);
    return source_.Next(idle, frame);
  }
  absl::Status Agree(const Digest& digest) override {
    return source_.Agree(digest);
  }

 private:
  FrameSource& source_;
  const absl::Status& broken_;
};

// Notes what is executed.
class WatchedEngine final : public SynchronousEngine {
 public:
  WatchedEngine(const SchedulerOptions& options, uint64_t tampers_from,
                RankOutcome* outcome)
      : engine_({.num_pages = options.num_pages,
                 .page_size = options.page_size,
                 .vocabulary_size = kVocabularySize}),
        tampers_from_(tampers_from),
        outcome_(*outcome) {}

  absl::Status Execute(const StepPlan& plan, StepResult* result) override {
    outcome_.executed.push_back({plan.step, HashPlan(plan)});
    LOCKSTEP_RETURN_IF_ERROR(engine_.Execute(plan, result));
    if (plan.step >= tampers_from_ && outcome_.tampered_step == 0) {
      Tamper(plan, result);
    }
    return absl::OkStatus();
  }

 private:
  void Tamper(const StepPlan& plan, StepResult* result) {
    for (size_t i = 0; i < plan.spans.size(); ++i) {
      if (!plan.spans[i].samples) continue;
      result->spans[i].token ^= 1;
      outcome_.tampered_step = plan.step;
      return;
    }
  }

  FakeEngine engine_;
  const uint64_t tampers_from_;
  RankOutcome& outcome_;
};

}  // namespace

RankOutcome RunRank(const Scenario& scenario, uint32_t rank,
                    FrameSource* source, CheckingSink* sink) {
  const Surroundings surroundings(scenario.seed() * 64 + rank);
  const SchedulerOptions options = OptionsOf(scenario, rank);
  const Fault& fault = scenario.fault();
  const bool tampers =
      fault.kind() == Fault::OTHER_TOKEN && fault.rank() == rank;
  RankOutcome outcome;
  WatchedEngine engine(options, tampers ? fault.step() : UINT64_MAX, &outcome);
  Scheduler scheduler(options, sink);
  StepHistory history;
  StepWatchdog watchdog(absl::InfiniteDuration(), [](uint64_t) {});
  StoppableSource stoppable(source, &outcome.status);
  StepLoop loop({.source = &stoppable,
                 .scheduler = &scheduler,
                 .engine = &engine,
                 .history = &history,
                 .watchdog = &watchdog,
                 .on_step_end = [&](const SchedulerStats& stats) {
                   outcome.num_steps = stats.step;
                   outcome.preemptions = stats.preemptions;
                   outcome.status.Update(scheduler.CheckConservation());
                   outcome.status.Update(sink->status());
                 }});
  outcome.status.Update(loop.Run());
  return outcome;
}

}  // namespace lockstep::testing
