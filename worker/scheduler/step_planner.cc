#include "worker/scheduler/step_planner.h"

#include <glog/logging.h>

#include <vector>

#include "worker/scheduler/prefill_chunk.h"

namespace lockstep {
namespace {

// Admission leaves room for each running sequence to grow by so much before
// one must be preempted.
constexpr int kGrowthTokens = 16;

class Planner {
 public:
  explicit Planner(SchedulerState* state)
      : state_(*state), table_(state->table), plan_(state->plan) {}

  void Run() {
    PlanDecodes();
    PlanPrefills();
  }

 private:
  int tokens_left() const {
    return state_.options.max_step_tokens - plan_.num_tokens;
  }
  int rows_left() const {
    return state_.options.max_logits_rows - plan_.num_logits_rows;
  }

  void PlanDecodes() {
    // Preemption takes sequences from the end, so those planned stay.
    for (size_t i = 0; i < table_.running().size(); ++i) {
      ScheduledSequence* scheduled = table_.running()[i];
      if (!scheduled->decodes) continue;
      if (!MakeRoomToGrow(scheduled)) return;
      AddSpan(scheduled, NextPrefillChunk(*scheduled, /*max_tokens=*/1,
                                          /*max_rows=*/1));
    }
  }

  // False if `scheduled`, then the last one, had to go itself.
  bool MakeRoomToGrow(ScheduledSequence* scheduled) {
    while (!state_.pages.Grow(*scheduled)) {
      ScheduledSequence* victim = table_.running().back();
      CHECK_GT(table_.running().size(), 1)
          << "a sequence alone has too few pages";
      state_.Preempt(victim);
      if (victim == scheduled) return false;
    }
    return true;
  }

  void PlanPrefills() {
    for (ScheduledSequence* scheduled : table_.running()) {
      if (!scheduled->decodes) prefilling_.push_back(scheduled);
    }
    auto running = prefilling_.begin();
    bool admits = true;
    while (tokens_left() > 0) {
      ScheduledSequence* waiting = admits && !table_.waiting().empty()
                                       ? *table_.waiting().begin()
                                       : nullptr;
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

  bool Admit(ScheduledSequence* scheduled) {
    const int num_running = static_cast<int>(table_.running().size());
    if (num_running >= state_.options.max_sequences) return false;
    // Alone, it needs no reserve.
    const int reserve_pages =
        num_running == 0
            ? 0
            : (num_running + 1) * state_.pages.PagesFor(kGrowthTokens);
    if (!state_.pages.Acquire(*scheduled, reserve_pages)) return false;
    table_.Start(scheduled);
    return true;
  }

  void AddChunk(ScheduledSequence* scheduled) {
    const SequenceSpan span =
        NextPrefillChunk(*scheduled, tokens_left(), rows_left());
    if (span.count > 0) AddSpan(scheduled, span);
  }

  void AddSpan(ScheduledSequence* scheduled, const SequenceSpan& span) {
    plan_.spans.push_back(span);
    plan_.num_tokens += span.count;
    plan_.num_logits_rows += span.num_logits_rows();
    state_.planned.push_back(scheduled);
    if (scheduled->was_scheduled) return;
    scheduled->was_scheduled = true;
    state_.sink->OnFirstScheduled(scheduled->id(), span.begin);
  }

  SchedulerState& state_;
  SequenceTable& table_;
  StepPlan& plan_;
  std::vector<ScheduledSequence*> prefilling_;
};

}  // namespace

void PlanStep(SchedulerState* state) {
  state->plan.spans.clear();
  state->plan.num_tokens = 0;
  state->plan.num_logits_rows = 0;
  state->planned.clear();
  Planner(state).Run();
}

}  // namespace lockstep
