#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/testing/process.h"

namespace lockstep::testing {

// The processes of one worker group, each started apart, so that anything may
// be between them.
//
//   Ranks ranks({.worker = "worker/worker", .model = path, .size = 2});
//   LOCKSTEP_RETURN_IF_ERROR(ranks.StartLeader());
//   LOCKSTEP_RETURN_IF_ERROR(ranks.StartFollower(1, ranks.leader_address()));
//   LOCKSTEP_RETURN_IF_ERROR(ranks.AwaitServing());
//
// One thread. The destructor kills those that still run.
class Ranks {
 public:
  struct Options {
    std::string worker;  // the binary
    std::string model;
    int size = 2;
    std::vector<std::string> flags;  // of every rank
    // Of every rank: a program and its arguments, before the worker's.
    std::vector<std::string> launcher;
  };

  explicit Ranks(Options options);

  absl::Status StartLeader();
  absl::Status StartFollower(int rank, const std::string& leader_address);

  // Waits until `rank` has written `text`.
  absl::Status AwaitLine(int rank, const std::string& text);
  absl::Status AwaitServing();

  int size() const { return options_.size; }
  Process& rank(int rank) const { return *processes_[rank]; }
  bool is_started(int rank) const { return processes_[rank] != nullptr; }
  const std::string& leader_address() const { return leader_address_; }
  // Of the leader's service. REQUIRES: AwaitServing was OK.
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // Of the leader's service and of the rendezvous; 0 when not known.
  int port() const { return port_; }
  int leader_port() const;

  // The output of all ranks, without the steps of histories.
  std::string Output() const;

 private:
  absl::Status Start(int rank, const std::string& leader_address);

  const Options options_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::string leader_address_;
  int port_ = 0;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace lockstep::testing
