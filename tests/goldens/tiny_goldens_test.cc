#include <gtest/gtest.h>

#include <iostream>

#include "tests/goldens/golden_check.h"

namespace lockstep::goldens {
namespace {

using kernels::Arithmetic;
using kernels::KvType;

// Every case, so that one that is no longer found shows, too: 25 models in two
// types; 1, 2, 4 and 8 ranks, which give the same bits, and 3, which give
// others; for the nine heads of llama_uneven 9, too, with bits of their own on
// each. The six mixtures again with whole experts.
void ExpectAgreement(const Numerics& numerics) {
  GoldenCheckOptions options;
  options.folder = "tests/goldens/tiny";
  options.numerics = numerics;
  const auto counts = CheckGoldens(options, std::cout);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->passed, 2 * (24 * (5 + 1) + 6 + 6 * 5));
  EXPECT_EQ(counts->failed, 0);
  EXPECT_EQ(counts->skipped, 0);
}

TEST(TinyGoldens, AgreeInStrictArithmetic) {
  ExpectAgreement({Arithmetic::kStrict, KvType::kF32});
}

TEST(TinyGoldens, AgreeInFastArithmetic) {
  ExpectAgreement({Arithmetic::kFast, KvType::kF32});
}

TEST(TinyGoldens, AgreeWithASmallerKvCache) {
  ExpectAgreement({Arithmetic::kFast, KvType::kF16});
  ExpectAgreement({Arithmetic::kFast, KvType::kInt8});
}

}  // namespace
}  // namespace lockstep::goldens
