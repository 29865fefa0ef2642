#include "common/metrics/program_metrics.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "common/metrics/process_metrics.h"
#include "common/status_macros.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<ProgramMetrics>> ProgramMetrics::Start(
    Options options) {
  const int port = options.port;
  std::unique_ptr<ProgramMetrics> metrics(
      new ProgramMetrics(std::move(options)));
  if (port == 0) return metrics;
  LOCKSTEP_ASSIGN_OR_RETURN(
      metrics->server_, MetricsServer::Start(absl::StrCat("0.0.0.0:", port),
                                             "metrics_port", &metrics->board_));
  return metrics;
}

ProgramMetrics::ProgramMetrics(Options options)
    : board_(std::move(options.table)),
      process_(
          board_.Register([program = options.program, version = options.version,
                           health = options.health](MetricWriter& writer) {
            CollectProcess(program, version, *health, writer);
          })) {}

}  // namespace lockstep
