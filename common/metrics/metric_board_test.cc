#include "common/metrics/metric_board.h"

#include <gtest/gtest.h>

#include "common/metrics/histogram.h"

namespace lockstep {
namespace {

constexpr MetricInfo kTable[] = {
    {"pages", MetricType::kGauge, "state", "pages of the cache"},
    {"steps_total", MetricType::kCounter, "", "steps"},
    {"step_seconds", MetricType::kHistogram, "rank", "of steps"},
};
constexpr double kBounds[] = {0.5, 1};

TEST(MetricBoardTest, WritesTheTableInItsOrderAsPrometheusReadsIt) {
  Histogram steps(kBounds);
  steps.Observe(0.25);
  steps.Observe(3);
  MetricBoard board(JoinMetrics({kTable}));
  const auto registration = board.Register([&](MetricWriter& writer) {
    writer.Add("step_seconds", {"0"}, steps);
    writer.Add("pages", {"free"}, 7);
    writer.Add("pages", {"he\"ld"}, 2);
  });
  EXPECT_EQ(board.Text(), R"(# HELP pages pages of the cache
# TYPE pages gauge
pages{state="free"} 7
pages{state="he\"ld"} 2
# HELP steps_total steps
# TYPE steps_total counter
# HELP step_seconds of steps
# TYPE step_seconds histogram
step_seconds_count{rank="0"} 2
step_seconds_sum{rank="0"} 3.25
step_seconds_bucket{rank="0",le="0.5"} 1
step_seconds_bucket{rank="0",le="1"} 1
step_seconds_bucket{rank="0",le="+Inf"} 2
)");
}

TEST(MetricBoardTest, ASourceThatLeftIsNotAsked) {
  MetricBoard board(JoinMetrics({kTable}));
  int asked = 0;
  {
    const auto registration =
        board.Register([&](MetricWriter& /*writer*/) { ++asked; });
    board.Collect();
  }
  board.Collect();
  EXPECT_EQ(asked, 1);
}

TEST(MetricBoardTest, ARegistrationCanBeMoved) {
  MetricBoard board(JoinMetrics({kTable}));
  int asked = 0;
  MetricBoard::Registration kept;
  {
    auto first = board.Register([&](MetricWriter& /*writer*/) { ++asked; });
    kept = std::move(first);
  }
  board.Collect();
  EXPECT_EQ(asked, 1);
}

TEST(MetricBoardDeathTest, WhatIsNotInTheTableCanNotBeWritten) {
  MetricBoard board(JoinMetrics({kTable}));
  const auto registration =
      board.Register([&](MetricWriter& writer) { writer.Add("sheep", {}, 1); });
  EXPECT_DEATH(board.Collect(), "sheep is in no table");
}

TEST(MetricBoardDeathTest, LabelsAreThoseOfTheTable) {
  MetricBoard board(JoinMetrics({kTable}));
  const auto registration = board.Register([&](MetricWriter& writer) {
    writer.Add("pages", {"free", "0"}, 1);
  });
  EXPECT_DEATH(board.Collect(), "pages");
}

TEST(MetricsAsMarkdownTest, IsALineAMetric) {
  EXPECT_EQ(MetricsAsMarkdown(kTable), R"(| name | type | labels | |
|---|---|---|---|
| `pages` | gauge | `state` | pages of the cache |
| `steps_total` | counter |  | steps |
| `step_seconds` | histogram | `rank` | of steps |
)");
}

}  // namespace
}  // namespace lockstep
