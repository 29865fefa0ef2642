#pragma once

#include <absl/types/span.h>

namespace lockstep {

// The largest of `logits`; minus infinity if there is none.
// REQUIRES: no NaN.
float MaxLogit(absl::Span<const float> logits);

// weights[i] = exp((logits[i] - max) * scale): the numerators of a softmax, 1
// for the largest logit even where it is infinite, 0 below e^-87. Within 2e-7
// of the exact value, and never above 1.
//
// Made of additions and multiplications only, so its bits are the same on every
// machine; the C library's exp takes other instructions on other processors.
// REQUIRES: no NaN; max = MaxLogit(logits); scale > 0; equal sizes.
void ExpWeights(absl::Span<const float> logits, float max, float scale,
                absl::Span<float> weights);

}  // namespace lockstep
