#pragma once

#include <absl/status/status.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/testing/process.h"

namespace lockstep::testing {

// Worker groups of one rank each and a gateway in front of them, as processes
// on ports that the system chooses.
//
//   Fleet fleet({.worker = "worker/worker", …});
//   LOCKSTEP_RETURN_IF_ERROR(fleet.Start());
//   LOCKSTEP_RETURN_IF_ERROR(fleet.KillAndRestart(2));
//
// One thread, as a process dies with the thread that started it.
class Fleet {
 public:
  struct Options {
    std::string worker;  // the binaries
    std::string gateway;
    std::string model;
    int groups = 3;
    std::vector<std::string> gateway_flags;
  };

  explicit Fleet(Options options);

  // All groups serve, and the gateway knows of each.
  absl::Status Start();
  // SIGKILL; then a new one at the same address, which serves on return.
  absl::Status KillAndRestart(int group);

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // Of the gateway, so far.
  std::string GatewayOutput() const { return gateway_->output(); }

 private:
  absl::Status StartGroup(int group);

  const Options options_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Process>> groups_;
  std::unique_ptr<Process> gateway_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace lockstep::testing
