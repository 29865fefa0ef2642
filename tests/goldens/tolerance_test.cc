#include "tests/goldens/tolerance.h"

#include <gtest/gtest.h>

#include "tests/goldens/golden_case.h"

namespace lockstep::goldens {
namespace {

using kernels::Arithmetic;
using kernels::KvType;

GoldenCase Golden() {
  GoldenCase golden;
  golden.rounding = 2e-4;
  return golden;
}

TEST(Tolerance, OfStrictArithmeticIsRounding) {
  const Tolerance tolerance = ToleranceFor(Golden(), Numerics());
  EXPECT_FLOAT_EQ(tolerance.difference, 2e-4);
  EXPECT_FLOAT_EQ(tolerance.margin, 4e-4);
}

TEST(Tolerance, OfFastArithmeticIsALittleMore) {
  const Tolerance tolerance =
      ToleranceFor(Golden(), {.arithmetic = Arithmetic::kFast});
  EXPECT_GT(tolerance.difference, 1e-3);
  EXPECT_LT(tolerance.difference, 0.02);
}

TEST(Tolerance, GrowsAsTheKvCacheShrinks) {
  for (const Arithmetic arithmetic : {Arithmetic::kStrict, Arithmetic::kFast}) {
    double last = 0;
    for (const KvType type : kernels::kKvTypes) {
      const Tolerance tolerance = ToleranceFor(Golden(), {arithmetic, type});
      EXPECT_GT(tolerance.difference, last);
      EXPECT_FLOAT_EQ(tolerance.margin, 2 * tolerance.difference);
      last = tolerance.difference;
    }
  }
}

}  // namespace
}  // namespace lockstep::goldens
