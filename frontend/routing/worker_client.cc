#include "frontend/routing/worker_client.h"

#include <glog/logging.h>

#include <utility>

#include "common/grpc_server.h"

namespace lockstep {
namespace {

constexpr int kFirstReconnectMs = 100;
constexpr int kMaxReconnectMs = 1000;
// gRPC's least time between two attempts is the most an attempt has, too; one
// that is refused is followed by the next as soon as the two above say.
constexpr int kConnectTimeoutMs = 2000;
constexpr std::chrono::seconds kAbortTimeout{10};

grpc::ChannelArguments WorkerChannelArguments() {
  grpc::ChannelArguments arguments = ChannelArguments();
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  // Windows stay small, so that an answer whose client lags behind waits at the
  // worker, which knows its bound, and not in gRPC's memory here.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return arguments;
}

}  // namespace

WorkerClient::WorkerClient(const std::string& address, const ClientTls& tls)
    : address_(address), stubs_(address, WorkerChannelArguments(), tls) {}

std::unique_ptr<WorkerCall> WorkerClient::Generate(
    v1::WorkerGenerateRequest request, const CallMetadata& metadata,
    std::chrono::system_clock::time_point deadline,
    WorkerCall::Listener* listener) {
  const auto held = stubs_.Get();
  return std::make_unique<WorkerCall>(
      std::shared_ptr<v1::Worker::Stub>(held, &held->worker), address_,
      std::move(request), metadata, deadline, listener);
}

void WorkerClient::Abort(const std::string& request_id,
                         const std::vector<uint32_t>& choices) {
  struct Call {
    grpc::ClientContext context;
    v1::AbortRequest request;
    v1::AbortResponse response;
  };
  auto call = std::make_shared<Call>();  // kept alive by its callback
  call->context.set_deadline(std::chrono::system_clock::now() + kAbortTimeout);
  call->request.add_request_ids(request_id);
  call->request.mutable_choices()->Add(choices.begin(), choices.end());
  stubs_.Get()->worker.async()->Abort(
      &call->context, &call->request, &call->response,
      [call, address = address_](const grpc::Status& status) {
        LOG_IF(WARNING, !status.ok())
            << "cannot abort " << call->request.request_ids(0) << " at the "
            << "worker at " << address << ": " << status.error_message();
      });
}

absl::StatusOr<v1::ModelInfo> WorkerClient::GetModelInfo(
    grpc::ClientContext* context) {
  v1::ModelInfo info;
  const grpc::Status status =
      stubs_.Get()->worker.GetModelInfo(context, {}, &info);
  if (!status.ok()) return DescribeWorkerStatus(status, address_);
  return info;
}

absl::StatusOr<v1::ServerInfo> WorkerClient::GetServerInfo(
    grpc::ClientContext* context) {
  v1::ServerInfo info;
  const grpc::Status status =
      stubs_.Get()->worker.GetServerInfo(context, {}, &info);
  if (!status.ok()) return DescribeWorkerStatus(status, address_);
  return info;
}

std::unique_ptr<grpc::ClientReader<grpc::health::v1::HealthCheckResponse>>
WorkerClient::WatchHealth(grpc::ClientContext* context) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(v1::Worker::service_full_name());
  context->set_wait_for_ready(true);
  return stubs_.Get()->health.Watch(context, request);
}

std::unique_ptr<grpc::ClientReader<v1::Load>> WorkerClient::WatchLoad(
    grpc::ClientContext* context) {
  context->set_wait_for_ready(true);
  return stubs_.Get()->worker.WatchLoad(context, {});
}

}  // namespace lockstep
