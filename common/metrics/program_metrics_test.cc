#include "common/metrics/program_metrics.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/metrics/process_metrics.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class ProgramMetricsTest : public ::testing::Test {
 protected:
  auto Start(int port) {
    return ProgramMetrics::Start({.program = "gateway",
                                  .version = "1.2",
                                  .table = JoinMetrics({ProcessMetrics()}),
                                  .health = &health_,
                                  .port = port});
  }

  HealthBoard health_;
};

TEST_F(ProgramMetricsTest, WithoutAServerTheProcessIsOnTheBoard) {
  const auto metrics = Start(0);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_THAT(
      (*metrics)->board()->Text(),
      HasSubstr(
          "\nlockstep_build_info{program=\"gateway\",version=\"1.2\"} 1\n"));
}

TEST_F(ProgramMetricsTest, ThePortIsThatOfTheFlag) {
  MetricBoard board(JoinMetrics({ProcessMetrics()}));
  const auto other = MetricsServer::Start("0.0.0.0:0", "metrics_port", &board);
  ASSERT_TRUE(other.ok()) << other.status();
  const absl::Status status = Start((*other)->port()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(),
              HasSubstr(absl::StrCat("0.0.0.0:", (*other)->port())));
  EXPECT_THAT(status.message(), HasSubstr("--metrics_port"));
}

}  // namespace
}  // namespace lockstep
