#pragma once

#include <absl/status/statusor.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <memory>
#include <string>

#include "common/metrics/metric_board.h"

namespace lockstep {

// GET /metrics on a port and on threads of its own, so that a scrape neither
// waits for requests nor holds them up.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       auto server,
//       MetricsServer::Start("0.0.0.0:9090", "metrics_port", &board));
//
// A client that says nothing is cut off after some seconds; as many as there
// are threads can hold the others up for that long.
class MetricsServer {
 public:
  // `address` is host:port; port 0 takes a free one. `flag` names the option
  // that the sentence of a failure tells to change. `board` must outlive this.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const std::string& address, const std::string& flag,
      const MetricBoard* board);

  ~MetricsServer();

  int port() const { return port_; }

 private:
  class Scrape;

  MetricsServer() = default;

  std::shared_ptr<prometheus::Collectable> scrape_;
  std::unique_ptr<prometheus::Exposer> exposer_;  // before what it asks
  int port_ = 0;
};

}  // namespace lockstep
