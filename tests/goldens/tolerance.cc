#include "tests/goldens/tolerance.h"

namespace lockstep::goldens {
namespace {

using kernels::Arithmetic;
using kernels::KvType;

// Activations of 8 bits against quantized weights: what other engines that
// compute so are off by, and a little more.
constexpr Tolerance kEightBits = {
    .difference = 0.25, .margin = 0.4, .top_logprobs = 5};
// Activations and plain weights of 14 bits.
constexpr double kFourteenBits = 0.015;

double DifferenceOf(KvType type) {
  switch (type) {
    case KvType::kF32:
      return 0;
    case KvType::kF16:
      return 0.02;
    case KvType::kBF16:
      return 0.12;
    case KvType::kInt8:
      return 0.35;
  }
  return 0;
}

}  // namespace

Tolerance ToleranceFor(const GoldenCase& golden, bool quantized_weights,
                       const Numerics& numerics) {
  Tolerance tolerance = {.difference = golden.rounding};
  const bool fast = numerics.arithmetic == Arithmetic::kFast;
  if (fast && quantized_weights) {
    tolerance = kEightBits;
  } else {
    if (fast) tolerance.difference += kFourteenBits;
    // The best logit may be too low by it, and the second best too high.
    tolerance.margin = 2 * tolerance.difference;
  }
  tolerance.difference += DifferenceOf(numerics.kv_type);
  tolerance.margin += 2 * DifferenceOf(numerics.kv_type);
  return tolerance;
}

}  // namespace lockstep::goldens
