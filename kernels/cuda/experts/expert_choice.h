#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_types.h"
#include "kernels/expert_rule.h"

namespace lockstep::cuda {

// The best experts of each token, best first, and their weights: as
// kernels::ChooseExperts has them of the same logits, whose sigmoids have the
// same bits here. Sums of all experts' softmax are added in another order.
struct ExpertChoiceArgs {
  const float* logits;  // [tokens, num_experts]
  int tokens;
  int num_experts;
  kernels::ExpertRule rule;
  const float* bias;  // [num_experts], or null
  int32_t* experts;   // [tokens, rule.count]
  float* weights;     // [tokens, rule.count]
};

// REQUIRES: what kernels::ChooseExperts requires of the rule.
CudaError ChooseExperts(const ExpertChoiceArgs& args, Stream stream);

}  // namespace lockstep::cuda
