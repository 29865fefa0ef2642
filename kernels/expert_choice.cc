#include "kernels/expert_choice.h"

#include <cmath>
#include <limits>

#include "kernels/simd/lanes.h"

namespace lockstep::kernels {
namespace {

constexpr float kLeast = -std::numeric_limits<float>::infinity();

// An expert, or a group of them.
struct Candidate {
  float score;
  int32_t number;

  bool BetterThan(const Candidate& other) const {
    return score > other.score ||
           (score == other.score && number < other.number);
  }
};

constexpr Candidate kBetterThanAll = {std::numeric_limits<float>::infinity(),
                                      -1};
constexpr Candidate kWorseThanAll = {kLeast,
                                     std::numeric_limits<int32_t>::max()};

// The best of `count` that `last` is better than; score_of(number) may be NaN.
template <typename ScoreOf>
Candidate NextBest(int count, const ScoreOf& score_of, const Candidate& last) {
  Candidate best = kWorseThanAll;
  for (int32_t i = 0; i < count; ++i) {
    const float score = score_of(i);
    const Candidate candidate = {std::isnan(score) ? kLeast : score, i};
    if (last.BetterThan(candidate) && candidate.BetterThan(best)) {
      best = candidate;
    }
  }
  return best;
}

void ChooseBySoftmax(absl::Span<const float> logits, const ExpertRule& rule,
                     int32_t* experts, float* weights) {
  const auto logit_of = [logits](int32_t i) { return logits[i]; };
  Candidate last = kBetterThanAll;
  float chosen = 0;
  float largest = 0;
  for (int i = 0; i < rule.count; ++i) {
    last = NextBest(static_cast<int>(logits.size()), logit_of, last);
    if (i == 0) largest = last.score;
    experts[i] = last.number;
    weights[i] = Exp(last.score - largest);
    chosen += weights[i];
  }
  float total = chosen;
  if (!rule.renormalize) {
    total = 0;
    for (const float logit : logits) total += Exp(logit - largest);
  }
  for (int i = 0; i < rule.count; ++i) {
    weights[i] = weights[i] / total * rule.scale;
  }
}

// The scores of one token's experts, and what is added for the choice alone.
struct BiasedScores {
  absl::Span<float> scores;
  const float* bias;

  float operator()(int32_t expert) const {
    return bias == nullptr ? scores[expert] : scores[expert] + bias[expert];
  }
};

// Experts of groups that are not chosen become NaN, the least.
void LeaveOutGroups(const ExpertRule& rule, const BiasedScores& biased) {
  const int size = static_cast<int>(biased.scores.size()) / rule.groups;
  const auto two_best = [&](int32_t group) {
    const auto score_of = [&](int32_t i) { return biased(group * size + i); };
    const Candidate best = NextBest(size, score_of, kBetterThanAll);
    return best.score + NextBest(size, score_of, best).score;
  };
  Candidate worst_chosen = kBetterThanAll;
  for (int i = 0; i < rule.groups_chosen; ++i) {
    worst_chosen = NextBest(rule.groups, two_best, worst_chosen);
  }
  for (int32_t group = 0; group < rule.groups; ++group) {
    const float score = two_best(group);
    if (!worst_chosen.BetterThan({std::isnan(score) ? kLeast : score, group})) {
      continue;
    }
    for (int32_t i = 0; i < size; ++i) {
      biased.scores[group * size + i] = std::nanf("");
    }
  }
}

void ChooseBySigmoid(absl::Span<float> logits, const ExpertRule& rule,
                     const float* bias, int32_t* experts, float* weights) {
  for (float& logit : logits) {
    if (!std::isnan(logit)) logit = 1.0f / (1.0f + Exp(0.0f - logit));
  }
  const BiasedScores biased = {logits, bias};
  if (rule.groups_chosen < rule.groups) LeaveOutGroups(rule, biased);
  Candidate last = kBetterThanAll;
  // So that no score of a broken model divides by zero.
  float total = 1e-20f;
  for (int i = 0; i < rule.count; ++i) {
    last = NextBest(static_cast<int>(logits.size()), biased, last);
    experts[i] = last.number;
    const float score = logits[last.number];
    weights[i] = std::isnan(score) ? 0 : score;
    total += weights[i];
  }
  const float divisor = rule.renormalize ? total : 1;
  for (int i = 0; i < rule.count; ++i) {
    weights[i] = weights[i] / divisor * rule.scale;
  }
}

}  // namespace

void ChooseExperts(absl::Span<float> logits, const ExpertRule& rule,
                   const float* bias, int32_t* experts, float* weights) {
  if (rule.sigmoid) {
    ChooseBySigmoid(logits, rule, bias, experts, weights);
  } else {
    ChooseBySoftmax(logits, rule, experts, weights);
  }
}

}  // namespace lockstep::kernels
