#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

namespace lockstep {

// What every gRPC server of ours is built with: peers that are gone without a
// word are noticed within a minute, those that do not begin within ten seconds
// are closed, and a port has one server alone.
void SetServerLimits(grpc::ServerBuilder* builder);

// Largest message either side accepts, in bytes, unless a server says less.
inline constexpr int kMaxMessageBytes = 64 << 20;

struct GrpcServerOptions {
  // A request of more is RESOURCE_EXHAUSTED before it is read.
  int max_request_bytes = kMaxMessageBytes;
  // Null: without TLS. Kept as long as the server.
  std::shared_ptr<grpc::ServerCredentials> credentials = nullptr;
  // A connection of this age, give or take a tenth, takes no new calls, so that
  // clients behind a balancer of connections spread anew; those it has may go
  // on for as long as `age_grace`.
  absl::Duration max_connection_age = absl::InfiniteDuration();
  absl::Duration age_grace = absl::InfiniteDuration();
};

// A running gRPC server with grpc.health.v1 and reflection beside `services`.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       auto server,
//       GrpcServer::Start("0.0.0.0:50051", "listen", {&inference},
//                         {v1::Inference::service_full_name()}));
//   server->SetServing(true);
//
// Health starts as NOT_SERVING, for "" and for every service by name. The
// services are the caller's and must outlive the server. Shutdown is called
// once, by the owner; every other method from any thread.
class GrpcServer {
 public:
  // `address` is host:port; port 0 takes a free one. `flag` names the option
  // the sentence of a failure tells the user to change. What has been read of
  // all requests and not yet passed on stays below a gigabyte.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      const std::string& address, const std::string& flag,
      const std::vector<grpc::Service*>& services,
      const std::vector<std::string>& service_names,
      const GrpcServerOptions& options = {});

  ~GrpcServer();

  int port() const { return port_; }

  void SetServing(bool serving);

  // Refuses new calls, gives running ones until `grace_ms`, then cancels them.
  void Shutdown(int grace_ms);

 private:
  GrpcServer() = default;

  std::vector<std::string> service_names_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // outlives server_
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

// The arguments every channel between our processes uses: keepalive that the
// servers above allow, and the same message limit.
grpc::ChannelArguments ChannelArguments();

}  // namespace lockstep
