#include <gtest/gtest.h>

#include <iostream>
#include <vector>

#include "tests/goldens/golden_check.h"
#include "tests/testing/test_data.h"

namespace lockstep::goldens {
namespace {

using kernels::Arithmetic;
using kernels::KvType;

// Of its nine heads three ranks hold three each; two, four and eight do not
// divide them.
void ExpectAgreement(const Numerics& numerics, const std::vector<int>& sizes) {
  const auto models = testing::TestData("models");
  ASSERT_TRUE(models.ok()) << models.status();
  GoldenCheckOptions options;
  options.folder = "tests/goldens";
  options.models = *models;
  options.tensor_parallel_sizes = sizes;
  options.numerics = numerics;
  const auto counts = CheckGoldens(options, std::cout);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->passed, 1 + sizes.size());  // the prompts' ids, too
  EXPECT_EQ(counts->failed, 0);
  EXPECT_EQ(counts->skipped, 0);
}

TEST(SmolLm2Goldens, AgreeInStrictArithmetic) {
  ExpectAgreement({Arithmetic::kStrict, KvType::kF32}, {1, 2, 3, 4, 8});
}

TEST(SmolLm2Goldens, AgreeInFastArithmetic) {
  ExpectAgreement({Arithmetic::kFast, KvType::kF16}, {1, 3});
}

}  // namespace
}  // namespace lockstep::goldens
