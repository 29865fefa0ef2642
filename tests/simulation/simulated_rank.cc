#include "tests/simulation/simulated_rank.h"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <random>
#include <utility>

#include "common/status_macros.h"
#include "tests/simulation/surroundings.h"
#include "tests/testing/async_device/async_engine.h"
#include "tests/testing/fake_engine.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/engine/engine.h"
#include "worker/group/step_history.h"
#include "worker/runtime/step_loop.h"
#include "worker/runtime/step_watchdog.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep::testing {
namespace {

SchedulerOptions OptionsOf(const Scenario& scenario, uint32_t rank) {
  const Limits& limits = scenario.limits();
  SchedulerOptions options = {
      .num_pages = limits.num_pages(),
      .page_size = limits.page_size(),
      .max_step_tokens = limits.max_step_tokens(),
      .max_sequences = limits.max_sequences(),
      .max_logits_rows = limits.max_logits_rows(),
      .max_context = limits.max_context(),
      .steps_in_flight = std::max(1, limits.steps_in_flight()),
      .host_samples = limits.host_samples()};
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
    hash.Add(span.token_from);
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

// Notes what is executed, and lets the scenario's fault happen.
class WatchedEngine final : public Engine {
 public:
  // `fault`: null where the rank has none.
  WatchedEngine(std::unique_ptr<Engine> engine, const Fault* fault,
                RankOutcome* outcome)
      : engine_(std::move(engine)), fault_(fault), outcome_(*outcome) {}

  int max_steps_in_flight() const override {
    return engine_->max_steps_in_flight();
  }

  absl::Status Launch(const StepPlan& plan) override {
    LOCKSTEP_RETURN_IF_ERROR(Call());
    outcome_.executed.push_back({plan.step, HashPlan(plan)});
    if (!launched_.empty()) ++outcome_.num_overlapped;
    Launched launched;
    launched.step = plan.step;
    for (const SequenceSpan& span : plan.spans) {
      launched.samples.push_back(span.samples);
    }
    launched_.push_back(std::move(launched));
    return engine_->Launch(plan);
  }

  absl::Status Retire(StepResult* result) override {
    LOCKSTEP_RETURN_IF_ERROR(Call());
    LOCKSTEP_RETURN_IF_ERROR(engine_->Retire(result));
    const Launched launched = std::move(launched_.front());
    launched_.pop_front();
    if (Has(Fault::OTHER_TOKEN) && launched.step >= fault_->step() &&
        outcome_.tampered_step == 0) {
      Tamper(launched, result);
    }
    return absl::OkStatus();
  }

 private:
  struct Launched {
    uint64_t step = 0;
    std::vector<bool> samples;  // by span
  };

  bool Has(Fault::Kind kind) const {
    return fault_ != nullptr && fault_->kind() == kind;
  }

  absl::Status Call() {
    ++num_calls_;
    if (!Has(Fault::FAILING_CALL) || num_calls_ != fault_->step()) {
      return absl::OkStatus();
    }
    return absl::InternalError(
        absl::StrCat("the device is gone at call ", num_calls_));
  }

  void Tamper(const Launched& launched, StepResult* result) {
    for (size_t i = 0; i < launched.samples.size(); ++i) {
      if (!launched.samples[i]) continue;
      result->spans[i].token ^= 1;
      outcome_.tampered_step = launched.step;
      return;
    }
  }

  const std::unique_ptr<Engine> engine_;
  const Fault* const fault_;
  RankOutcome& outcome_;
  std::deque<Launched> launched_;
  uint64_t num_calls_ = 0;
};

std::unique_ptr<Engine> MakeEngine(const SchedulerOptions& options,
                                   uint64_t seed) {
  if (options.steps_in_flight == 1) {
    return std::make_unique<FakeEngine>(
        FakeEngine::Options{.num_pages = options.num_pages,
                            .page_size = options.page_size,
                            .vocabulary_size = kVocabularySize});
  }
  const AsyncEngine::Options device = {.num_pages = options.num_pages,
                                       .page_size = options.page_size,
                                       .vocabulary_size = kVocabularySize,
                                       .host_samples = options.host_samples};
  return std::make_unique<AsyncEngine>(
      device, [random = std::minstd_rand(seed)](size_t n) mutable {
        return random() % n;
      });
}

}  // namespace

RankOutcome RunRank(const Scenario& scenario, uint32_t rank,
                    FrameSource* source, CheckingSink* sink) {
  const uint64_t seed = scenario.seed() * 64 + rank;
  const Surroundings surroundings(seed);
  const SchedulerOptions options = OptionsOf(scenario, rank);
  const Fault& fault = scenario.fault();
  RankOutcome outcome;
  WatchedEngine engine(MakeEngine(options, seed),
                       fault.rank() == rank ? &fault : nullptr, &outcome);
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
