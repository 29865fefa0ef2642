#pragma once

#include <absl/types/span.h>

#include <cstdint>

#include "kernels/expert_rule.h"

namespace lockstep::kernels {

// The `rule.count` best experts of one token, best first, of equal ones the
// lower number first; NaN is the least. Plain code with the same bits on every
// machine.
//
// By the softmax the best are those of the largest logits. By sigmoids they are
// those of the largest score + bias, in the groups whose two best of these have
// the largest sum, of equal groups the lower first; `bias` [logits.size()] may
// be null, and is no part of the weights. Experts of other groups are never
// chosen. weights [rule.count]: the scores, times what the rule says. Logits
// become scores where they are sigmoids.
//
// REQUIRES: the experts of the chosen groups are at least rule.count; groups
// are of two experts at least where they are more than are chosen; without
// sigmoids no bias and one group.
void ChooseExperts(absl::Span<float> logits, const ExpertRule& rule,
                   const float* bias, int32_t* experts, float* weights);

}  // namespace lockstep::kernels
