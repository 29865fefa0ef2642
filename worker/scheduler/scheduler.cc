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
    CHECK(!planned_) << "a message between Plan and Commit";
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
    CHECK(!planned_) << "Plan without Commit";
    planned_ = true;
    const bool has_work = HasWork();
    StepPlan& plan = state_.plan;
    ++plan.step;
    state_.pages.set_step(plan.step);
    planner_.Plan();
    CHECK_EQ(plan.empty(), !has_work) << "step " << plan.step;
    plan.digest = digest_.Next(&state_);
    return plan;
  }

  void Commit(const StepResult& result) {
    CHECK(planned_) << "Commit without Plan";
    planned_ = false;
    digest_.AddResult(state_.plan, result);
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
    stats.step = state_.plan.step;
    stats.preemptions = state_.preemptions;
    return stats;
  }

  absl::Status CheckConservation() const {
    return lockstep::CheckConservation(state_);
  }

 private:
  SchedulerState state_;
  StepPlanner planner_{&state_};
  PlanDigest digest_;
  bool planned_ = false;
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

void Scheduler::Commit(const StepResult& result) { impl_->Commit(result); }

SchedulerStats Scheduler::stats() const { return impl_->stats(); }

absl::Status Scheduler::CheckConservation() const {
  return impl_->CheckConservation();
}

}  // namespace lockstep
