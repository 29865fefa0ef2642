#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/health.grpc.pb.h"
#include "common/security/grpc_credentials.h"
#include "common/security/secure_stub.h"
#include "frontend/routing/worker_call.h"
#include "proto/worker.grpc.pb.h"

namespace lockstep {

// The gateway's connection to one worker group: its leader's address. Any
// thread. Connects by itself, within two seconds or anew, and again within a
// second when the worker is back. After its certificates have changed new calls
// are on a new connection.
class WorkerClient {
 public:
  explicit WorkerClient(const std::string& address, const ClientTls& tls = {});

  const std::string& address() const { return address_; }

  // The call is not started yet; `metadata` goes with it. `listener` must
  // outlive it.
  std::unique_ptr<WorkerCall> Generate(
      v1::WorkerGenerateRequest request, const CallMetadata& metadata,
      std::chrono::system_clock::time_point deadline,
      WorkerCall::Listener* listener);

  // Ends some choices of a request; does not wait. A failure is only logged:
  // the choices then run to their own end.
  void Abort(const std::string& request_id,
             const std::vector<uint32_t>& choices);

  // Blocks; `context` bounds it.
  absl::StatusOr<v1::ModelInfo> GetModelInfo(grpc::ClientContext* context);

  absl::StatusOr<v1::ServerInfo> GetServerInfo(grpc::ClientContext* context);

  // The worker's health, at once and on every change, for as long as it can be
  // reached. Waits for a connection.
  std::unique_ptr<grpc::ClientReader<grpc::health::v1::HealthCheckResponse>>
  WatchHealth(grpc::ClientContext* context);

  // The group's load, the same way.
  std::unique_ptr<grpc::ClientReader<v1::Load>> WatchLoad(
      grpc::ClientContext* context);

 private:
  // Of one channel.
  struct Stubs {
    explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
        : worker(channel), health(channel) {}

    v1::Worker::Stub worker;
    grpc::health::v1::Health::Stub health;
  };

  const std::string address_;
  SecureStub<Stubs> stubs_;
};

}  // namespace lockstep
