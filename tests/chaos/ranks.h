#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/testing/process.h"

namespace lockstep::testing {

// The processes of one worker group, each started apart, so that anything may
// be between them; but rank 1 may be the leader's child.
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
    std::vector<std::string> launcher = {};
    // The leader starts rank 1. What that writes is in the leader's output.
    bool has_child = false;
  };

  explicit Ranks(Options options);

  absl::Status StartLeader();
  absl::Status StartFollower(int rank, const std::string& leader_address);

  // Waits until `rank` has written `text`.
  absl::Status AwaitLine(int rank, const std::string& text);
  absl::Status AwaitServing();

  int size() const { return options_.size; }
  bool is_child(int rank) const { return options_.has_child && rank == 1; }
  // REQUIRES: it is not the leader's child.
  Process& rank(int rank) const { return *processes_[rank]; }
  bool is_started(int rank) const { return pid(rank) > 0; }
  pid_t pid(int rank) const;  // 0: not started
  void Signal(int rank, int signal);

  // The exit code; of the leader's child nothing: it is gone.
  absl::StatusOr<std::optional<int>> WaitForExit(int rank,
                                                 absl::Duration timeout);

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
  pid_t child_ = 0;
  std::string leader_address_;
  int port_ = 0;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace lockstep::testing
