#include "tests/goldens/tolerance.h"

namespace lockstep::goldens {
namespace {

using kernels::Arithmetic;
using kernels::KvType;

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

Tolerance ToleranceFor(const GoldenCase& golden, const Numerics& numerics) {
  Tolerance tolerance = {.difference = golden.rounding};
  if (numerics.arithmetic == Arithmetic::kFast) {
    tolerance.difference += kFourteenBits;
  }
  tolerance.difference += DifferenceOf(numerics.kv_type);
  // The best logit may be too low by it, and the second best too high.
  tolerance.margin = 2 * tolerance.difference;
  return tolerance;
}

}  // namespace lockstep::goldens
