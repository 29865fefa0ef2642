#include "common/grpc_server.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/message.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "common/health.pb.h"

namespace lockstep {
namespace {

constexpr int kPingIntervalMs = 30'000;
constexpr int kPingTimeoutMs = 10'000;
constexpr int kLeastPingIntervalMs = 10'000;
constexpr int kHandshakeTimeoutMs = 10'000;
constexpr size_t kMaxReadBytes = 1 << 30;  // of all connections
// Of one connection; further calls wait in the client until others have ended.
constexpr int kMaxStreams = 16'384;
// Without a call; clients of gRPC connect again by themselves.
constexpr int kMaxIdleMs = 300'000;

// As gRPC has it: INT_MAX is for ever.
int ToMilliseconds(absl::Duration duration) {
  return static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(duration),
                                            std::numeric_limits<int>::max()));
}

}  // namespace

void SetServerLimits(grpc::ServerBuilder* builder) {
  // Two servers on one port would each get some of the calls.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                              kHandshakeTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingIntervalMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      kLeastPingIntervalMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    const std::string& address, const std::string& flag,
    const std::vector<grpc::Service*>& services,
    const std::vector<std::string>& service_names,
    const GrpcServerOptions& options) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  // gRPC's health service brings no descriptor; with this one reflection can
  // describe it.
  google::protobuf::LinkMessageReflection<
      grpc::health::v1::HealthCheckRequest>();

  std::unique_ptr<GrpcServer> result(new GrpcServer);
  result->service_names_ = service_names;
  grpc::ServerBuilder builder;
  result->credentials_ = options.credentials != nullptr
                             ? options.credentials
                             : grpc::InsecureServerCredentials();
  builder.AddListeningPort(address, result->credentials_, &result->port_);
  builder.SetMaxReceiveMessageSize(options.max_request_bytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  builder.SetResourceQuota(grpc::ResourceQuota().Resize(kMaxReadBytes));
  SetServerLimits(&builder);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                             ToMilliseconds(options.max_connection_age));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                             ToMilliseconds(options.age_grace));
  for (grpc::Service* service : services) builder.RegisterService(service);
  result->server_ = builder.BuildAndStart();
  if (result->server_ == nullptr || result->port_ == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address,
                     ": the address is in use or not of this host; choose "
                     "another with --",
                     flag, "."));
  }
  result->SetServing(false);
  return result;
}

GrpcServer::~GrpcServer() {
  if (server_ != nullptr) Shutdown(0);
}

void GrpcServer::SetServing(bool serving) {
  auto* health = server_->GetHealthCheckService();
  health->SetServingStatus(serving);
  for (const std::string& name : service_names_) {
    health->SetServingStatus(name, serving);
  }
}

void GrpcServer::Shutdown(int grace_ms) {
  server_->Shutdown(std::chrono::system_clock::now() +
                    std::chrono::milliseconds(grace_ms));
  server_->Wait();
}

grpc::ChannelArguments ChannelArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingIntervalMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return arguments;
}

}  // namespace lockstep
