#include "worker/layers/expert_routing.h"

#include <algorithm>

namespace lockstep {

ExpertRouting::ExpertRouting(int num_experts, int experts_per_token,
                             int max_tokens)
    : experts_per_token_(experts_per_token),
      experts_(static_cast<size_t>(max_tokens) * experts_per_token),
      weights_(experts_.size()),
      token_of_(experts_.size()),
      row_of_(experts_.size()),
      next_row_(num_experts) {
  groups_.reserve(num_experts);
}

void ExpertRouting::Group(int tokens) {
  const int rows = tokens * experts_per_token_;
  std::fill(next_row_.begin(), next_row_.end(), 0);
  for (int i = 0; i < rows; ++i) ++next_row_[experts_[i]];
  groups_.clear();
  int begin = 0;
  for (int expert = 0; expert < next_row_.size(); ++expert) {
    const int count = next_row_[expert];
    next_row_[expert] = begin;
    if (count > 0) groups_.push_back({expert, begin, begin + count});
    begin += count;
  }
  for (int i = 0; i < rows; ++i) {
    const int row = next_row_[experts_[i]]++;
    row_of_[i] = row;
    token_of_[row] = i / experts_per_token_;
  }
}

}  // namespace lockstep
