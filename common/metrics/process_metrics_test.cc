#include "common/metrics/process_metrics.h"

#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <string>

#include "common/metrics/metric_board.h"

namespace lockstep {
namespace {

std::map<std::string, double> Read(const HealthBoard& health) {
  MetricBoard board(JoinMetrics({ProcessMetrics()}));
  const auto registration = board.Register([&](MetricWriter& writer) {
    CollectProcess("gateway", "1.2", health, writer);
  });
  std::map<std::string, double> values;
  for (const auto& family : board.Collect()) {
    EXPECT_EQ(family.metric.size(), 1) << family.name;
    values[family.name] =
        family.metric.front().gauge.value + family.metric.front().counter.value;
  }
  return values;
}

TEST(ProcessMetricsTest, TellsThisProcess) {
  HealthBoard health;
  while (std::clock() < CLOCKS_PER_SEC / 20) {  // some ticks
  }
  const auto values = Read(health);
  EXPECT_GT(values.at("process_cpu_seconds_total"), 0);
  EXPECT_GT(values.at("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(values.at("process_open_fds"), 2);
  EXPECT_GE(values.at("process_max_fds"), values.at("process_open_fds"));
  const double now = absl::ToUnixSeconds(absl::Now());
  EXPECT_LE(values.at("process_start_time_seconds"), now + 2);
  EXPECT_GE(values.at("process_start_time_seconds"), now - 3600);
}

TEST(ProcessMetricsTest, TellsItsHealth) {
  HealthBoard health;
  EXPECT_EQ(Read(health).at("lockstep_ready"), 0);
  EXPECT_EQ(Read(health).at("lockstep_live"), 1);
  health.Enter(Phase::kReady);
  EXPECT_EQ(Read(health).at("lockstep_ready"), 1);
  health.Enter(Phase::kFailed);
  EXPECT_EQ(Read(health).at("lockstep_live"), 0);
}

}  // namespace
}  // namespace lockstep
