#pragma once

#include <absl/status/status.h>

#include "common/health/health_board.h"
#include "common/metrics/metric_board.h"
#include "proto/group.pb.h"
#include "worker/group/follower_source.h"
#include "worker/group/group_failure.h"
#include "worker/group/membership.h"
#include "worker/options.h"
#include "worker/runtime/rank.h"
#include "worker/runtime/step_meter.h"
#include "worker/step_health.h"

namespace lockstep {

// A follower of a group that has formed: computes, and stays silent.
//
//   Follower follower(options, &rank, std::move(membership), &failure,
//                     &health, &metrics);
//   absl::Status status = follower.Run();
//
// Made and run once, on the main thread. SIGTERM and SIGINT have no effect from
// then on: the leader says when to leave, or is gone.
class Follower {
 public:
  // `rank`, which has agreed, and all the others must outlive this.
  Follower(const WorkerOptions& options, Rank* rank, Membership membership,
           GroupFailure* failure, HealthBoard* health, MetricBoard* metrics);
  ~Follower();

  // Returns OK after the stop message, otherwise the group's first failure.
  absl::Status Run();

 private:
  absl::Status LoadAndStep();

  const WorkerOptions options_;
  Rank* const rank_;
  GroupFailure* const failure_;
  HealthBoard* const health_;
  MetricBoard* const metrics_;
  const v1::CollectiveAddress collective_address_;
  StepMeter step_meter_;
  FollowerSource source_;
  StepAge step_age_;
};

}  // namespace lockstep
