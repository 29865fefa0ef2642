#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/grpc_server.h"
#include "common/health/health_board.h"
#include "common/metrics/metric_board.h"
#include "common/security/tls_identity.h"
#include "proto/group.pb.h"
#include "worker/group/group_failure.h"
#include "worker/group/leader_source.h"
#include "worker/group/membership.h"
#include "worker/group/request_inbox.h"
#include "worker/options.h"
#include "worker/runtime/load_watch.h"
#include "worker/runtime/rank.h"
#include "worker/runtime/step_meter.h"
#include "worker/service/admission.h"
#include "worker/service/drain.h"
#include "worker/service/grammar_cache.h"
#include "worker/service/load_board.h"
#include "worker/service/output_router.h"
#include "worker/service/output_stream.h"
#include "worker/service/request_meters.h"
#include "worker/service/warm_up.h"
#include "worker/service/worker_service.h"

namespace lockstep {

// The leader of a group that has formed.
//
//   Leader leader(options, &rank, std::move(membership), &failure, &health,
//                 &metrics);
//   absl::Status status = leader.Run();
//
// Made and run once, on the main thread.
class Leader {
 public:
  // `rank`, which has agreed, and all the others must outlive this.
  Leader(const WorkerOptions& options, Rank* rank, Membership membership,
         GroupFailure* failure, HealthBoard* health, MetricBoard* metrics);
  ~Leader();

  // Loads, warms up and serves. Returns OK after a drain that every follower
  // has followed; otherwise the first failure, with all streams ended.
  absl::Status Run();

 private:
  absl::Status Prepare();
  absl::Status Serve();
  void OnWarm(const absl::Status& status);
  void OnState(v1::ServingState state);
  void Announce();
  void OnFailure(const GroupFailure::Cause& cause);
  void LogFailure();
  void OnStepEnd(const SchedulerStats& stats);
  void TellMetrics();
  void Hurry();
  void EndOverdueStep();

  const WorkerOptions options_;
  Rank* const rank_;
  GroupFailure* const failure_;
  HealthBoard* const health_;
  MetricBoard* const metrics_;
  const v1::CollectiveAddress collective_address_;
  RequestMeters request_meters_;
  StepMeter step_meter_;
  RequestInbox inbox_;
  OutputRouter router_;
  Drain drain_;  // before what times its pauses
  Admission admission_;
  GrammarCache grammars_;
  LoadBoard board_;
  LoadWatch loads_;
  LeaderSource source_;
  WorkerService service_;
  std::unique_ptr<TlsIdentity> tls_;  // outlives server_
  std::unique_ptr<GrpcServer> server_;
  std::atomic<bool> is_warm_ = false;
  WarmUp warm_up_;
  bool is_announced_ = false;  // OnState's
  // OnFailure's, then LogFailure's.
  std::vector<std::shared_ptr<OutputStream>> failed_;
  std::atomic<uint64_t> hurry_timer_ = 0;   // 0: none
  MetricBoard::Registration told_metrics_;  // the last: it reads all above
};

}  // namespace lockstep
