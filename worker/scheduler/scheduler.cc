#include "worker/scheduler/scheduler.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include "worker/scheduler/conservation.h"
#include "worker/scheduler/intake.h"
#include "worker/scheduler/plan_digest.h"
#include "worker/scheduler/scheduler_state.h"
#include "worker/scheduler/step_commit.h"
#include "worker/scheduler/step_planner.h"

namespace lockstep {

class Scheduler::Impl {
 public:
  Impl(const SchedulerOptions& options, OutputSink* sink)
      : state_(options, sink) {}

  absl::Status Apply(const v1::RankMessage& message) {
    CHECK(!state_.steps.full()) << "a message between Plan and Commit";
    switch (message.kind_case()) {
      case v1::RankMessage::kAdd:
        return ApplyAdd(message.add(), &state_);
      case v1::RankMessage::kAbort:
        ApplyAbort(message.abort(), &state_);
        return absl::OkStatus();
      default:
        return absl::InvalidArgumentError(
            absl::StrCat("a message of kind ", message.kind_case(),
                         " is none for the scheduler."));
    }
  }

  const StepPlan& Plan() {
    CHECK(!state_.steps.full()) << "Plan without Commit";
    const bool has_work = HasWork();
    const uint64_t number = ++state_.last_step;
    state_.pages.set_step(number);
    PlannedStep& step = planner_.Plan();
    const bool may_be_empty = !has_work || state_.steps.size() > 1;
    CHECK(!step.plan.empty() || may_be_empty) << "step " << number;
    step.plan.step = number;
    step.plan.digest = digest_.Next(step);
    return step.plan;
  }

  // All but one step where that one is full of work; see docs/overlap.md.
  bool MustCommit() const {
    const StepsInFlight& steps = state_.steps;
    if (steps.empty()) return false;
    return steps.full() || steps.newest().plan.empty() ||
           steps.newest().is_awaited || !HasWork();
  }

  const StepPlan* oldest() const {
    return state_.steps.empty() ? nullptr : &state_.steps.oldest().plan;
  }

  void Commit(const StepResult& result) {
    CHECK(!state_.steps.empty()) << "Commit without Plan";
    digest_.AddResult(state_.steps.oldest().plan, result);
    CommitStep(result, &state_);
  }

  bool HasWork() const { return !state_.table.empty(); }

  SchedulerStats stats() const {
    const PrefixCache& cache = state_.pages.cache();
    SchedulerStats stats;
    stats.running_sequences = static_cast<int>(state_.table.running().size());
    stats.waiting_sequences = state_.table.num_waiting();
    stats.waiting_tokens = static_cast<int>(state_.table.waiting_tokens());
    stats.free_pages = cache.num_free();
    stats.cached_pages = cache.num_evictable();
    stats.total_pages = cache.num_pages();
    stats.step = state_.last_step;
    stats.preemptions = state_.preemptions;
    stats.not_finite = state_.not_finite;
    return stats;
  }

  absl::Status CheckConservation() const {
    return lockstep::CheckConservation(state_);
  }

 private:
  SchedulerState state_;
  StepPlanner planner_{&state_};
  PlanDigest digest_;
};

Scheduler::Scheduler(const SchedulerOptions& options, OutputSink* sink) {
  const absl::Status valid = ValidateSchedulerOptions(options);
  CHECK(valid.ok()) << valid.message();
  impl_ = std::make_unique<Impl>(options, sink);
}

Scheduler::~Scheduler() = default;

absl::Status Scheduler::Apply(const v1::RankMessage& message) {
  return impl_->Apply(message);
}

bool Scheduler::HasWork() const { return impl_->HasWork(); }

const StepPlan& Scheduler::Plan() { return impl_->Plan(); }

bool Scheduler::MustCommit() const { return impl_->MustCommit(); }

const StepPlan* Scheduler::oldest() const { return impl_->oldest(); }

void Scheduler::Commit(const StepResult& result) { impl_->Commit(result); }

SchedulerStats Scheduler::stats() const { return impl_->stats(); }

absl::Status Scheduler::CheckConservation() const {
  return impl_->CheckConservation();
}

}  // namespace lockstep
