// A short run; `./lockstep failover` has 64 streams and a minute.

#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "tests/chaos/failover_run.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"

namespace lockstep::testing {
namespace {

TEST(Failover, EveryAnswerIsTheUndisturbedOne) {
  const std::string model = ::testing::TempDir() + "failover.gguf";
  TinyModel tiny;
  tiny.max_context = 8000;
  WriteGguf(tiny, model);
  const auto report = RunFailover({.fleet = {.worker = "worker/worker",
                                             .gateway = "frontend/gateway",
                                             .model = model,
                                             .gateway_flags = {}},
                                   .streams = 8,
                                   .duration = absl::Seconds(12)});
  ASSERT_TRUE(report.ok()) << report.status();
  std::cout << report->ToString() << "\n";
  EXPECT_GT(report->kills, 0);
  EXPECT_GT(report->failovers, 0);
}

}  // namespace
}  // namespace lockstep::testing
