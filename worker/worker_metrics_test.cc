#include "worker/worker_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/read_file.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(WorkerMetricsPage, HasTheTable) {
  EXPECT_THAT(testing::ReadFile("docs/metrics.md"),
              HasSubstr(MetricsAsMarkdown(WorkerMetrics())));
}

}  // namespace
}  // namespace lockstep
