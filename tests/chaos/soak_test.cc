// Two minutes of mixed traffic; `./lockstep soak` takes its time.

#include "tests/chaos/soak.h"

#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"

namespace lockstep::testing {
namespace {

TEST(SoakTest, EveryCallHasOneEndAndNothingGrows) {
  const std::string model = ::testing::TempDir() + "soak.gguf";
  TinyModel tiny;
  tiny.max_context = 2000;
  WriteGguf(tiny, model);
  const auto report = Soak({.worker = "worker/worker",
                            .model = model,
                            .warm_up = absl::Seconds(10),
                            .duration = absl::Seconds(110)});
  ASSERT_TRUE(report.ok()) << report.status();
  std::cout << report->ToString() << "\n";
  for (const Client::End end : {Client::End::kSummary, Client::End::kCancelled,
                                Client::End::kDeadline}) {
    EXPECT_GT(report->ends[static_cast<int>(end)], 0);
  }
}

}  // namespace
}  // namespace lockstep::testing
