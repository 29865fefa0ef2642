#pragma once

#include <absl/types/span.h>

#include <cstdint>

namespace lockstep::kernels {

// The `count` largest logits of one token, largest first, of equal ones the
// lower number first; NaN is the least. weights [count] is their softmax, among
// all logits or, renormalized, among the chosen. Plain code with the same bits
// on every machine. REQUIRES: count <= logits.size().
void ChooseExperts(absl::Span<const float> logits, int count, bool renormalize,
                   int32_t* experts, float* weights);

}  // namespace lockstep::kernels
