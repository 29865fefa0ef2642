#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/gateway/measured_process.h"

namespace lockstep::bench {

// A gateway as a process of its own, on ports of the system's choice, for as
// long as this lives. One thread.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(const GatewayProcess gateway,
//                             GatewayProcess::Start(binary, {"--model=…"}));
//   ask(gateway.grpc_address());
class GatewayProcess {
 public:
  // Blocks until it serves.
  static absl::StatusOr<GatewayProcess> Start(const std::string& binary,
                                              std::vector<std::string> flags);
  // Another one, which has HTTP alone: `command` is a shell's, in which
  // {engine} is replaced by the address of what it is to ask, and {port} by
  // that on which it is to listen. Blocks until it answers a completion.
  static absl::StatusOr<GatewayProcess> StartRival(std::string command,
                                                   const std::string& engine);

  // Empty where there is none.
  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& http_address() const { return http_address_; }

  const MeasuredProcess& process() const { return *process_; }

 private:
  explicit GatewayProcess(std::unique_ptr<MeasuredProcess> process)
      : process_(std::move(process)) {}

  std::unique_ptr<MeasuredProcess> process_;
  std::string grpc_address_;
  std::string http_address_;
};

}  // namespace lockstep::bench
