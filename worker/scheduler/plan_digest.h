#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "common/digest.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/scheduler/steps_in_flight.h"

namespace lockstep {

// The chain of digests by which ranks compare their states: each covers the
// one before, the ids sampled and the embeddings made in the steps that were
// committed since, and the plan. (The messages are the step loop's to add, as
// the bytes they came in.) Page tables enter page by page, each entry when a
// span first uses it and once more when it was rewritten, so that a step costs
// what it changes.
class PlanDigest {
 public:
  void AddResult(const StepPlan& plan, const StepResult& result);

  // The digest of the step planned last.
  Digest Next(const PlannedStep& step);

 private:
  void AddEmbedding(absl::Span<const float> values);
  void AddSpan(const SequenceSpan& span, ScheduledSequence* scheduled);

  DigestBuilder builder_;
  Digest last_ = {};
  std::vector<uint32_t> sampled_;
};

}  // namespace lockstep
