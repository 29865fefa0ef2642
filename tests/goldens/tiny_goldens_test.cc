#include <gtest/gtest.h>

#include <iostream>

#include "tests/goldens/golden_check.h"

namespace lockstep::goldens {
namespace {

// Every case, so that one that is no longer found shows, too: five models in
// two types; 1, 2, 4 and 8 ranks, and 3 and 9 for the nine heads of
// llama_uneven.
TEST(TinyGoldens, AgreeAtEveryTensorParallelSize) {
  GoldenCheckOptions options;
  options.folder = "tests/goldens/tiny";
  const auto counts = CheckGoldens(options, std::cout);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->passed, 2 * (4 * 4 + 6));
  EXPECT_EQ(counts->failed, 0);
  EXPECT_EQ(counts->skipped, 0);
}

}  // namespace
}  // namespace lockstep::goldens
