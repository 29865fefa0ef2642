#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <string>

#include "common/security/tls_identity.h"
#include "worker/runtime/rank.h"

namespace lockstep {

// What one worker process was told, by flags or by the environment, checked.
struct WorkerOptions {
  RankOptions rank;
  std::string served_model_name;
  std::string listen;          // host:port of the gRPC service, the leader's
  TlsFiles tls;                // of that
  std::string health_listen;   // host:port of the health service; empty: none
  int metrics_port = 0;        // 0: none
  std::string leader_address;  // host:port of the rendezvous
  int num_nodes = 1;
  int node_rank = 0;
  // This process is its host's first rank and starts those after it.
  bool starts_local_ranks = false;
  absl::Duration group_timeout;
  absl::Duration load_timeout;
  absl::Duration drain_timeout;
  absl::Duration step_timeout;  // zero: derived from the warm-up
  absl::Duration heartbeat_timeout;
  int max_queued_requests = 0;
  int64_t max_queued_tokens = 0;  // 0: a few times the context

  bool is_leader() const { return rank.rank == 0; }

  // One line a flag, for the log.
  std::string ToString() const;
};

// Reads the flags of this binary, after ParseProgramFlags. INVALID_ARGUMENT
// names the flag, its value and limit.
absl::StatusOr<WorkerOptions> OptionsFromFlags();

}  // namespace lockstep
