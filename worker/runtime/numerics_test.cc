#include "worker/runtime/numerics.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using kernels::Arithmetic;
using kernels::KvType;

TEST(ParseNumerics, AutoIsTheTypeThatSuitsTheArithmetic) {
  EXPECT_EQ(ParseNumerics("fast", "auto")->kv_type, KvType::kF16);
  EXPECT_EQ(ParseNumerics("strict", "auto")->kv_type, KvType::kF32);
}

TEST(ParseNumerics, AnyTypeGoesWithAnyArithmetic) {
  for (const Arithmetic arithmetic : {Arithmetic::kStrict, Arithmetic::kFast}) {
    for (const KvType type : kernels::kKvTypes) {
      const auto numerics = ParseNumerics(kernels::ArithmeticName(arithmetic),
                                          kernels::KvTypeName(type));
      ASSERT_TRUE(numerics.ok()) << numerics.status();
      EXPECT_EQ(numerics->arithmetic, arithmetic);
      EXPECT_EQ(numerics->kv_type, type);
    }
  }
}

TEST(ParseNumerics, NamesTheFlagAndWhatItMayBe) {
  EXPECT_EQ(ParseNumerics("Fast", "auto").status(),
            absl::InvalidArgumentError("--arithmetic is \"Fast\"; it must be "
                                       "fast or strict."));
  EXPECT_EQ(ParseNumerics("fast", "fp8").status(),
            absl::InvalidArgumentError("--kv_cache_type is \"fp8\"; it must be "
                                       "auto, fp32, fp16, bf16 or int8."));
}

TEST(GenerationFingerprint, TellsWhateverChangesBits) {
  const Numerics strict;
  const Numerics fast = {.arithmetic = Arithmetic::kFast};
  const Numerics bf16 = {.kv_type = KvType::kBF16};
  const std::vector<int> eighths = {0, 0};
  const std::vector<int> of_three = {3, 0};
  EXPECT_EQ(GenerationFingerprint("model", strict, eighths),
            GenerationFingerprint("model", strict, eighths));
  const std::set<std::string> different = {
      GenerationFingerprint("model", strict, eighths),
      GenerationFingerprint("other", strict, eighths),
      GenerationFingerprint("model", fast, eighths),
      GenerationFingerprint("model", bf16, eighths),
      GenerationFingerprint("model", strict, of_three),
  };
  EXPECT_EQ(different.size(), 5);
}

}  // namespace
}  // namespace lockstep
