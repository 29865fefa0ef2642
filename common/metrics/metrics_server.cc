#include "common/metrics/metrics_server.h"

#include <absl/strings/str_cat.h>

#include <exception>
#include <vector>

namespace lockstep {
namespace {

constexpr char kThreads[] = "4";
constexpr char kRequestTimeoutMs[] = "5000";

}  // namespace

class MetricsServer::Scrape final : public prometheus::Collectable {
 public:
  explicit Scrape(const MetricBoard* board) : board_(board) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    return board_->Collect();
  }

 private:
  const MetricBoard* const board_;
};

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const std::string& address, const std::string& flag,
    const MetricBoard* board) {
  std::unique_ptr<MetricsServer> server(new MetricsServer);
  try {
    server->exposer_ =
        std::make_unique<prometheus::Exposer>(std::vector<std::string>{
            "listening_ports", address, "num_threads", kThreads,
            "request_timeout_ms", kRequestTimeoutMs});
  } catch (const std::exception&) {  // it says no more than that
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address,
                     " for metrics: the port is in use or "
                     "the address not of this host; choose another with --",
                     flag, "."));
  }
  server->scrape_ = std::make_shared<Scrape>(board);
  server->exposer_->RegisterCollectable(server->scrape_);
  server->port_ = server->exposer_->GetListeningPorts().front();
  return server;
}

MetricsServer::~MetricsServer() { exposer_ = nullptr; }

}  // namespace lockstep
