#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <memory>
#include <vector>

#include "common/health/health_board.h"
#include "common/metrics/metric_board.h"
#include "common/metrics/metric_writer.h"
#include "common/metrics/metrics_server.h"

namespace lockstep {

// The metrics of a program from its start to its end: the board at which its
// parts register, the process itself as the first, and what answers scrapes.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       const auto metrics,
//       ProgramMetrics::Start({.program = "gateway",
//                              .version = kVersion,
//                              .table = GatewayMetrics(),
//                              .health = &health,
//                              .port = options.metrics_port}));
//   metrics->board()->Register(…);
//
// Any thread.
class ProgramMetrics {
 public:
  struct Options {
    absl::string_view program;  // must outlive this, as must the version
    absl::string_view version;
    std::vector<MetricInfo> table;  // with ProcessMetrics()
    const HealthBoard* health;      // must outlive this
    int port = 0;                   // of all addresses; 0: no server
  };

  // The sentence of a failure names --metrics_port.
  static absl::StatusOr<std::unique_ptr<ProgramMetrics>> Start(Options options);

  MetricBoard* board() { return &board_; }

 private:
  explicit ProgramMetrics(Options options);

  // In this order, since each asks those before it.
  MetricBoard board_;
  const MetricBoard::Registration process_;
  std::unique_ptr<MetricsServer> server_;
};

}  // namespace lockstep
