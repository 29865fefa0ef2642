#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/goldens/golden_check.h"

namespace lockstep::goldens {
namespace {

TEST(SmolLm2Goldens, AgreeOnOneAndOnThreeRanks) {
  const char* data = std::getenv("LOCKSTEP_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "LOCKSTEP_TEST_DATA is not set";
  const auto counts =
      CheckGoldens({.folder = "tests/goldens",
                    .default_model = absl::StrCat(
                        data, "/models/SmolLM2-135M-Instruct.Q4_1.gguf"),
                    .tensor_parallel_sizes = {1, 3}},
                   std::cout);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->passed, 3);  // the prompts' ids, and two sizes
  EXPECT_EQ(counts->failed, 0);
}

}  // namespace
}  // namespace lockstep::goldens
