#include <gtest/gtest.h>

#include <iostream>

#include "tests/goldens/golden_check.h"
#include "tests/testing/test_data.h"

namespace lockstep::goldens {
namespace {

using kernels::Arithmetic;
using kernels::KvType;

// On one and on three ranks.
void ExpectAgreement(const Numerics& numerics) {
  const auto models = testing::TestData("models");
  ASSERT_TRUE(models.ok()) << models.status();
  GoldenCheckOptions options;
  options.folder = "tests/goldens";
  options.models = *models;
  options.tensor_parallel_sizes = {1, 3};
  options.numerics = numerics;
  const auto counts = CheckGoldens(options, std::cout);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->passed, 3);  // the prompts' ids, and two sizes
  EXPECT_EQ(counts->failed, 0);
  EXPECT_EQ(counts->skipped, 0);
}

TEST(SmolLm2Goldens, AgreeInStrictArithmetic) {
  ExpectAgreement({Arithmetic::kStrict, KvType::kF32});
}

TEST(SmolLm2Goldens, AgreeInFastArithmetic) {
  ExpectAgreement({Arithmetic::kFast, KvType::kF16});
}

}  // namespace
}  // namespace lockstep::goldens
