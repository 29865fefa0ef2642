#include "frontend/gateway.h"

#include <glog/logging.h>

#include <utility>

#include "common/status_macros.h"
#include "frontend/grpc/request_parser.h"

namespace lockstep {
namespace {

// For what has been written to reach the clients. Watchers of the health never
// leave by themselves, so the server waits for all of it.
constexpr int kFlushMs = 100;

// For requests that are told to end. One whose client does not read can not.
constexpr absl::Duration kEndTimeout = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Start(
    const GatewayOptions& options, const Tokenizer* tokenizer,
    std::function<void(const ServedModel& model, int port)> on_serving) {
  std::unique_ptr<Gateway> gateway(new Gateway(options, tokenizer));
  gateway->on_serving_ = std::move(on_serving);
  LOCKSTEP_ASSIGN_OR_RETURN(
      gateway->server_,
      GrpcServer::Start(options.listen, "listen", {&gateway->service_},
                        {v1::Inference::service_full_name()},
                        kMaxRequestBytes));
  LOG(INFO) << "listening on port " << gateway->port()
            << "; serving once the worker at " << options.worker_address
            << " is ready";
  gateway->monitor_.Start(
      [gateway = gateway.get()] { gateway->OnWorkerChange(); });
  return gateway;
}

Gateway::Gateway(const GatewayOptions& options, const Tokenizer* tokenizer)
    : options_(options),
      worker_(options.worker_address),
      pipeline_(options.pipeline, tokenizer, &worker_),
      monitor_(&worker_, tokenizer->info().vocabulary_size),
      service_(&pipeline_, &monitor_) {}

Gateway::~Gateway() {
  if (server_ != nullptr) Stop(absl::ZeroDuration());
}

void Gateway::OnWorkerChange() {
  const auto model = monitor_.Model();
  server_->SetServing(model.ok());
  if (!model.ok() || on_serving_ == nullptr) return;
  std::exchange(on_serving_, nullptr)(*model, port());
}

void Gateway::Drain() { Stop(options_.drain_timeout); }

void Gateway::Stop(absl::Duration grace) {
  monitor_.Stop();
  server_->SetServing(false);
  InflightRequests& inflight = pipeline_.inflight();
  inflight.Close();
  if (!inflight.AwaitIdle(grace)) {
    LOG(WARNING) << "ending " << inflight.number()
                 << " requests that did not end in "
                 << absl::FormatDuration(grace);
    inflight.EndAll(absl::UnavailableError(
        "the gateway is shutting down; try again at another."));
    inflight.AwaitIdle(kEndTimeout);
  }
  server_->Shutdown(kFlushMs);
  server_ = nullptr;
}

}  // namespace lockstep
