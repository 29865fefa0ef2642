#include "tests/goldens/tolerance.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/goldens/golden_case.h"

namespace lockstep::goldens {
namespace {

using kernels::Arithmetic;
using kernels::KvType;

constexpr int kAll = std::numeric_limits<int>::max();

GoldenCase Golden() {
  GoldenCase golden;
  golden.rounding = 2e-4;
  return golden;
}

TEST(Tolerance, OfStrictArithmeticIsRounding) {
  for (const bool quantized : {false, true}) {
    const Tolerance tolerance = ToleranceFor(Golden(), quantized, Numerics());
    EXPECT_FLOAT_EQ(tolerance.difference, 2e-4);
    EXPECT_FLOAT_EQ(tolerance.margin, 4e-4);
    EXPECT_EQ(tolerance.top_logprobs, kAll);
  }
}

TEST(Tolerance, OfFastArithmeticDependsOnTheWeights) {
  const Numerics fast = {.arithmetic = Arithmetic::kFast};
  const Tolerance plain = ToleranceFor(Golden(), false, fast);
  const Tolerance quantized = ToleranceFor(Golden(), true, fast);
  EXPECT_LT(plain.difference, 0.02);
  EXPECT_EQ(plain.top_logprobs, kAll);
  EXPECT_FLOAT_EQ(quantized.difference, 0.25);
  EXPECT_FLOAT_EQ(quantized.margin, 0.4);
  EXPECT_EQ(quantized.top_logprobs, 5);
}

TEST(Tolerance, GrowsAsTheKvCacheShrinks) {
  for (const Arithmetic arithmetic : {Arithmetic::kStrict, Arithmetic::kFast}) {
    double last = 0;
    for (const KvType type : kernels::kKvTypes) {
      const Tolerance tolerance =
          ToleranceFor(Golden(), false, {arithmetic, type});
      EXPECT_GT(tolerance.difference, last);
      EXPECT_FLOAT_EQ(tolerance.margin, 2 * tolerance.difference);
      last = tolerance.difference;
    }
  }
}

}  // namespace
}  // namespace lockstep::goldens
