#include "worker/scheduler/plan_digest.h"

#include <absl/strings/string_view.h>

#include <cstdint>

namespace lockstep {
namespace {

// In place of an id: none of a vocabulary, nor kNoToken.
constexpr uint32_t kNotFinite = kNoToken - 1;

}  // namespace

void PlanDigest::AddResult(const StepPlan& plan, const StepResult& result) {
  sampled_.clear();
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    if (!result.spans[i].is_finite) {
      sampled_.push_back(kNotFinite);
      continue;
    }
    if (plan.spans[i].samples) sampled_.push_back(result.spans[i].token);
    if (plan.spans[i].embeds) AddEmbedding(result.spans[i].embedding);
  }
  builder_.Add(absl::MakeConstSpan(sampled_));
}

Digest PlanDigest::Next(const PlannedStep& step) {
  const StepPlan& plan = step.plan;
  builder_.Add(last_);
  builder_.Add(plan.step);
  builder_.Add(uint64_t{plan.spans.size()});
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    AddSpan(plan.spans[i], step.sequences[i]);
  }
  last_ = builder_.Finish();
  return last_;
}

void PlanDigest::AddEmbedding(absl::Span<const float> values) {
  builder_.Add(absl::string_view(reinterpret_cast<const char*>(values.data()),
                                 values.size() * sizeof(float)));
}

void PlanDigest::AddSpan(const SequenceSpan& span,
                         ScheduledSequence* scheduled) {
  builder_.Add(scheduled->id().request);
  builder_.Add(uint64_t{scheduled->id().choice});
  builder_.Add(static_cast<uint64_t>(span.begin));
  builder_.Add(static_cast<uint64_t>(span.count));
  builder_.Add(uint64_t{span.samples});
  if (span.token_from >= 0) {
    builder_.Add(static_cast<uint64_t>(span.token_from));
  }
  builder_.Add(span.sequence->pages().subspan(scheduled->digested_pages));
  scheduled->digested_pages = static_cast<int>(span.sequence->pages().size());
}

}  // namespace lockstep
