#include "kernels/expert_choice.h"

#include <cmath>
#include <limits>

#include "kernels/simd/lanes.h"

namespace lockstep::kernels {
namespace {

struct Candidate {
  float logit;
  int32_t expert;

  bool BetterThan(const Candidate& other) const {
    return logit > other.logit ||
           (logit == other.logit && expert < other.expert);
  }
};

// The best of those that `last` is better than.
Candidate NextBest(absl::Span<const float> logits, const Candidate& last) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  Candidate best = {kLeast, std::numeric_limits<int32_t>::max()};
  for (size_t i = 0; i < logits.size(); ++i) {
    const Candidate candidate = {std::isnan(logits[i]) ? kLeast : logits[i],
                                 static_cast<int32_t>(i)};
    if (last.BetterThan(candidate) && candidate.BetterThan(best)) {
      best = candidate;
    }
  }
  return best;
}

}  // namespace

void ChooseExperts(absl::Span<const float> logits, int count, bool renormalize,
                   int32_t* experts, float* weights) {
  Candidate last = {std::numeric_limits<float>::infinity(), -1};
  float chosen = 0;
  float largest = 0;
  for (int i = 0; i < count; ++i) {
    last = NextBest(logits, last);
    if (i == 0) largest = last.logit;
    experts[i] = last.expert;
    weights[i] = Exp(last.logit - largest);
    chosen += weights[i];
  }
  float total = chosen;
  if (!renormalize) {
    total = 0;
    for (const float logit : logits) total += Exp(logit - largest);
  }
  for (int i = 0; i < count; ++i) weights[i] /= total;
}

}  // namespace lockstep::kernels
