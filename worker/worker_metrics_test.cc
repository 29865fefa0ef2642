#include "worker/worker_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(WorkerMetricsPage, HasTheTable) {
  std::ifstream file("docs/metrics.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(page, HasSubstr(MetricsAsMarkdown(WorkerMetrics())));
}

}  // namespace
}  // namespace lockstep
