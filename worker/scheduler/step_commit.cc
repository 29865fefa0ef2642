#include "worker/scheduler/step_commit.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>

namespace lockstep {
namespace {

bool IsStopId(const Sequence& sequence, uint32_t token) {
  const auto& stops = sequence.sampling().stop_token_ids();  // sorted
  return std::binary_search(stops.begin(), stops.end(), token);
}

// The first token since it was admitted is there, so the prompt is computed:
// others may use it, its siblings among them.
void EndPrefill(ScheduledSequence* scheduled, SchedulerState* state) {
  scheduled->has_sampled = true;
  state->pages.Publish(*scheduled);
  state->table.PromptIsShared(scheduled->id().request);
}

void TakeToken(const SpanResult& result, ScheduledSequence* scheduled,
               SchedulerState* state) {
  if (result.token == kNoToken) {
    state->Finish(scheduled, v1::GRAMMAR_TOO_COMPLEX, std::nullopt);
    return;
  }
  if (IsStopId(scheduled->sequence, result.token)) {
    state->Finish(scheduled, v1::STOP, result.token);
    return;
  }
  scheduled->sequence.AppendToken(result.token);
  state->sink->OnToken(scheduled->id(), result.token, result.logprobs);
  if (HasFullLength(scheduled->sequence, state->options.max_context)) {
    state->Finish(scheduled, v1::LENGTH, std::nullopt);
  }
}

void CommitSpan(const SequenceSpan& span, const SpanResult& result,
                ScheduledSequence* scheduled, SchedulerState* state) {
  scheduled->in_flight.positions -= span.count;
  scheduled->in_flight.tokens -= span.samples ? 1 : 0;
  scheduled->sequence.set_num_computed(span.begin + span.count);
  if (!result.is_finite) {
    return state->Finish(scheduled, v1::NOT_FINITE, std::nullopt);
  }
  if (span.prompt_logits_begin < span.prompt_logits_end) {
    scheduled->prompt_logits_done = span.prompt_logits_end;
    state->sink->OnPromptLogprobs(scheduled->id(), result.prompt_logprobs);
  }
  if (span.embeds) {
    state->sink->OnEmbedding(scheduled->id(), result.embedding);
    return state->Finish(scheduled, v1::STOP, std::nullopt);
  }
  if (!span.samples) return;
  if (!scheduled->has_sampled) EndPrefill(scheduled, state);
  TakeToken(result, scheduled, state);
}

}  // namespace

void CommitStep(const StepResult& result, SchedulerState* state) {
  const PlannedStep& step = state->steps.oldest();
  const StepPlan& plan = step.plan;
  CHECK_GE(result.spans.size(), plan.spans.size()) << "step " << plan.step;
  state->pages.OnStepEnd(plan.step);
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    ScheduledSequence* const scheduled = step.sequences[i];
    if (scheduled == nullptr) continue;
    CommitSpan(plan.spans[i], result.spans[i], scheduled, state);
  }
  state->steps.RemoveOldest();
}

}  // namespace lockstep
