#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/load/transport.h"
#include "proto/inference.grpc.pb.h"

namespace lockstep::bench {

// Our own protocol, over a few connections that are taken in turn.
class GrpcTransport : public Transport {
 public:
  // `target` is host:port of a gateway.
  GrpcTransport(const std::string& target, int connections);
  ~GrpcTransport() override;

  void Start(const Prompt& prompt, Listener* listener) override;
  void HandleOne(Clock::time_point deadline) override;

 private:
  class Call;

  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<v1::Inference::Stub>> stubs_;
  size_t begun_ = 0;
};

}  // namespace lockstep::bench
