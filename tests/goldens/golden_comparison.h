#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/goldens/golden_case.h"
#include "tests/goldens/golden_runner.h"
#include "tests/goldens/tolerance.h"

namespace lockstep::goldens {

// Where greedy ids part, at a step with a clear winner.
struct DifferingId {
  std::string prompt;
  int step = 0;
  uint32_t found = 0;
  uint32_t expected = 0;
  float margin = 0;
};

// How far answers are from the reference.
//
//   Comparison comparison;
//   for (…) Add(prompt, answer, tolerance, &comparison);
struct Comparison {
  // Largest difference of any logit, or of any log-probability where the
  // reference has those; infinite where a row is missing or has a NaN.
  double largest_difference = 0;
  std::string largest_at;  // the prompt
  int ids_equal = 0;
  std::optional<DifferingId> first_differing;
};

// Ids are compared up to the first that differs; where the reference's margin
// is within the tolerance there, both continuations are right.
void Add(const GoldenPrompt& prompt, const GoldenAnswer& answer,
         const Tolerance& tolerance, Comparison* comparison);

// Whether nothing is farther from the reference than `tolerance`.
bool Agrees(const Comparison& comparison, const Tolerance& tolerance);

// One clause: what agrees, and what does not.
std::string Describe(const Comparison& comparison);

}  // namespace lockstep::goldens
