#pragma once

#include "tests/goldens/golden_case.h"
#include "worker/runtime/numerics.h"

namespace lockstep::goldens {

// How far an answer may be from the reference; README.md says why.
struct Tolerance {
  // A logit or log-probability must differ by less.
  double difference = 0;
  // Another id may be picked only where the reference's margin is less.
  double margin = 0;
};

// Of the engine with `numerics`.
Tolerance ToleranceFor(const GoldenCase& golden, const Numerics& numerics);

}  // namespace lockstep::goldens
