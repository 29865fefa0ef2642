#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace lockstep::bench {

// A gateway as a process of its own, on ports of the system's choice; its log
// goes where ours does. Ended by the destructor. One thread.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto gateway,
//                             GatewayProcess::Start(binary, {"--model=…"}));
//   ask(gateway->grpc_address());
class GatewayProcess {
 public:
  // Blocks until it serves.
  static absl::StatusOr<std::unique_ptr<GatewayProcess>> Start(
      const std::string& binary, std::vector<std::string> flags);
  ~GatewayProcess();
  GatewayProcess(const GatewayProcess&) = delete;
  GatewayProcess& operator=(const GatewayProcess&) = delete;

  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& http_address() const { return http_address_; }

  // Of the processor, so far, in the process and in the kernel for it.
  double CpuSeconds() const;
  double ResidentMib() const { return StatusMib("VmRSS"); }
  double MostResidentMib() const { return StatusMib("VmHWM"); }  // ever

 private:
  double StatusMib(const std::string& key) const;
  explicit GatewayProcess(pid_t pid) : pid_(pid) {}

  const pid_t pid_;
  std::string grpc_address_;
  std::string http_address_;
};

}  // namespace lockstep::bench
