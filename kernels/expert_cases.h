#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/expert_rule.h"

// What tests of the choice of experts choose from, on every device.
namespace lockstep::kernels {

struct ExpertCase {
  std::string name;
  ExpertRule rule;
  std::vector<float> logits;
  std::vector<float> bias;  // or empty
};

// Numbers of experts around a warp's lanes and those of models; logits that are
// equal, far apart, infinite or no numbers, by either kind of score, with
// groups and biases.
inline std::vector<ExpertCase> AwkwardExpertCases(std::mt19937& random) {
  struct Rule {
    int experts;
    ExpertRule rule;
    bool biased = false;
  };
  const std::vector<Rule> rules = {
      {1, {.count = 1}},
      {2, {.count = 2, .renormalize = true}},
      {8, {.count = 2, .renormalize = true}},
      {31, {.count = 31}},
      {33, {.count = 5, .scale = 2.5f}},
      {60, {.count = 4}},
      {128, {.count = 8, .renormalize = true}},
      {6, {.count = 3, .sigmoid = true}},
      {8, {.count = 3, .sigmoid = true, .groups = 4, .groups_chosen = 2}, true},
      {70,
       {.count = 9,
        .sigmoid = true,
        .renormalize = true,
        .scale = 2.5f,
        .groups = 35,
        .groups_chosen = 5},
       true},
      {128, {.count = 8, .sigmoid = true, .renormalize = true}, true},
      {256,
       {.count = 8,
        .sigmoid = true,
        .renormalize = true,
        .scale = 2.5f,
        .groups = 8,
        .groups_chosen = 4},
       true},
  };
  const float nan = std::nanf(""), infinity = INFINITY;
  struct Kind {
    const char* name;
    std::vector<float> among;  // or normally distributed
    float deviation = 1;
  };
  const std::vector<Kind> kinds = {
      {"as of models", {}, 2},
      {"far apart", {}, 100},
      {"equal", {0.5f}},
      {"of two values", {1, -1}},
      {"broken", {nan, infinity, -infinity, 1}},
      {"no numbers", {nan}},
      {"lowest", {-infinity}},
  };
  std::vector<ExpertCase> cases;
  for (const Rule& rule : rules) {
    for (const Kind& kind : kinds) {
      ExpertCase made = {
          std::string(kind.name) + ", " + std::to_string(rule.experts),
          rule.rule,
          std::vector<float>(rule.experts),
          {}};
      std::normal_distribution<float> normal(0, kind.deviation);
      for (float& logit : made.logits) {
        logit = kind.among.empty() ? normal(random)
                                   : kind.among[random() % kind.among.size()];
      }
      if (rule.biased) {
        std::normal_distribution<float> of_bias(0, 0.3f);
        for (int i = 0; i < rule.experts; ++i) {
          made.bias.push_back(of_bias(random));
        }
      }
      cases.push_back(made);
    }
  }
  return cases;
}

}  // namespace lockstep::kernels
