#pragma once

#include <absl/types/span.h>

#include <cstdint>

namespace lockstep::kernels {

// How a router's logits become experts and their weights.
struct ExpertRule {
  int count = 0;  // experts a token
  // An expert's score is the sigmoid of its logit, in place of their softmax
  // (DeepSeek-V3 technical report, arXiv:2412.19437, section 2.1.2).
  bool sigmoid = false;
  bool renormalize = false;  // scores of the chosen are made to sum to 1
  float scale = 1;           // weight = score · scale
  // Only of sigmoids: the experts lie in so many runs of equal length, and all
  // that are chosen are of groups_chosen of them.
  int groups = 1;
  int groups_chosen = 1;
};

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
