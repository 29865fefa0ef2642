#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include <vector>

#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"

namespace lockstep {

// Makes embeddings of the hidden states that steps compute. Every rank has all
// of these, so each makes the same, and none is exchanged.
//
//   LOCKSTEP_RETURN_IF_ERROR(decoder.Forward(…));
//   LOCKSTEP_RETURN_IF_ERROR(pooler.Pool(plan, &decoder, &result));
//
// A mean is summed in fp64, position after position, over as many steps as
// compute the sequence: chunks change no bit of it. The sums are the sequence's
// SequenceState. Used by the engine's thread.
class Pooler {
 public:
  explicit Pooler(int hidden_size) : hidden_size_(hidden_size) {}

  // Of the step's tokens first … first + count - 1, after the last norm:
  // [count, hidden_size].
  using HiddenStatesOf = absl::FunctionRef<const float*(int first, int count)>;

  // Fills in `embedding` of the spans that embed, and whether it is finite;
  // spans without a sequence are of others. An error is a request for more
  // values than there are.
  absl::Status Pool(const StepPlan& plan, HiddenStatesOf hidden_states_of,
                    StepResult* result);

 private:
  absl::Status PoolSpan(const SequenceSpan& span, int first_token,
                        HiddenStatesOf hidden_states_of, SpanResult* result);

  const int hidden_size_;
  std::vector<double> values_;  // scratch, [hidden_size]
};

}  // namespace lockstep
