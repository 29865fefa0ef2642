#include "worker/scheduler/step_planner.h"

#include <glog/logging.h>

#include <algorithm>

#include "worker/core/host_part.h"
#include "worker/scheduler/next_span.h"

namespace lockstep {
namespace {

// Admission leaves room for each running sequence to grow by so much before
// one must be preempted.
constexpr int kGrowthTokens = 16;

// The mask of its next token depends on the one before.
bool NeedsTokensOnHost(const Sequence& sequence) {
  return sequence.request().grammar() != 0;
}

bool IsLeftToHost(const SequenceSpan& span, const SchedulerOptions& options) {
  return options.host_samples && NeedsHost(span);
}

}  // namespace

PlannedStep& StepPlanner::Plan() {
  step_ = &state_.steps.Add();
  PlanDecodes();
  PlanPrefills();
  return *step_;
}

int StepPlanner::tokens_left() const {
  return state_.options.max_step_tokens - step_->plan.num_tokens;
}

int StepPlanner::rows_left() const {
  return state_.options.max_logits_rows - step_->plan.num_logits_rows;
}

void StepPlanner::PlanDecodes() {
  const auto& running = state_.table.running();
  // Preemption takes sequences from the end, so those planned stay.
  for (size_t i = 0; i < running.size(); ++i) {
    if (!running[i]->decodes()) continue;
    if (ExpectsFullLength(*running[i], state_.options.max_context)) continue;
    if (!MakeRoomToGrow(running[i])) continue;
    AddSpan(running[i], NextSpan(*running[i], /*max_tokens=*/1,
                                 /*max_rows=*/1));
  }
}

bool StepPlanner::MakeRoomToGrow(ScheduledSequence* scheduled) {
  const auto& running = state_.table.running();
  while (!state_.pages.Grow(*scheduled)) {
    if (state_.pages.keeps_some()) return false;
    CHECK_GT(running.size(), 1) << "a sequence alone has too few pages";
    ScheduledSequence* victim = running.back();
    state_.Preempt(victim);
    if (victim == scheduled) return false;
  }
  return true;
}

void StepPlanner::PlanPrefills() {
  prefilling_.clear();
  for (ScheduledSequence* scheduled : state_.table.running()) {
    if (!scheduled->decodes()) prefilling_.push_back(scheduled);
  }
  const auto& queue = state_.table.waiting();
  auto running = prefilling_.begin();
  bool admits = true;
  while (tokens_left() > 0) {
    ScheduledSequence* waiting =
        admits && !queue.empty() ? *queue.begin() : nullptr;
    const bool running_first =
        running != prefilling_.end() &&
        (waiting == nullptr || ByPrecedence()(*running, waiting));
    if (running_first) {
      AddChunk(*running++);
    } else if (waiting == nullptr) {
      return;
    } else if (Admit(waiting)) {
      AddChunk(waiting);
    } else {
      admits = false;
    }
  }
}

bool StepPlanner::Admit(ScheduledSequence* scheduled) {
  const SchedulerOptions& options = state_.options;
  const int num_running = static_cast<int>(state_.table.running().size());
  if (num_running >= options.max_sequences) return false;
  // Alone, it needs no reserve.
  const int reserve_pages =
      num_running == 0
          ? 0
          : (num_running + 1) * state_.pages.PagesFor(kGrowthTokens);
  if (!state_.pages.Acquire(*scheduled, reserve_pages)) return false;
  const int longest = LongestLength(scheduled->sequence, options.max_context);
  scheduled->sequence.Reserve(longest, state_.pages.PagesFor(longest));
  state_.table.Start(scheduled);
  return true;
}

void StepPlanner::AddChunk(ScheduledSequence* scheduled) {
  const SequenceSpan span = NextSpan(*scheduled, tokens_left(), rows_left());
  if (span.count > 0) AddSpan(scheduled, span);
}

void StepPlanner::AddSpan(ScheduledSequence* scheduled,
                          const SequenceSpan& span) {
  StepPlan& plan = step_->plan;
  scheduled->in_flight.positions += span.count;
  scheduled->in_flight.tokens += span.samples ? 1 : 0;
  scheduled->last_step = state_.last_step;
  scheduled->last_span = static_cast<int>(plan.spans.size());
  plan.spans.push_back(span);
  plan.num_tokens += span.count;
  plan.num_logits_rows += span.num_logits_rows();
  step_->sequences.push_back(scheduled);
  step_->is_awaited |=
      (span.samples && NeedsTokensOnHost(scheduled->sequence)) ||
      IsLeftToHost(span, state_.options);
  if (scheduled->was_scheduled) return;
  scheduled->was_scheduled = true;
  const int cached_tokens =  // resumed ones are no prompt's
      std::min(span.begin, scheduled->sequence.num_prompt_tokens());
  state_.sink->OnFirstScheduled(scheduled->id(), cached_tokens);
}

}  // namespace lockstep
