#pragma once

#include <string>
#include <vector>

#include "common/metrics/metric_writer.h"
#include "worker/collectives/collective.h"
#include "worker/group/heartbeat_counts.h"
#include "worker/runtime/step_meter.h"
#include "worker/scheduler/scheduler_options.h"
#include "worker/service/admission.h"
#include "worker/service/load_board.h"
#include "worker/service/output_router.h"
#include "worker/service/request_meters.h"

namespace lockstep {

// Every metric of the binary `worker`: docs/metrics.md is this table in words.
// Those of vLLM have its names, labels and bounds, as dashboards, autoscalers
// and gateways know them; ours begin with lockstep_.
std::vector<MetricInfo> WorkerMetrics();

// Where a rank's values are; all may be read on any thread.
struct RankMeters {
  int rank = 0;
  const StepMeter* steps = nullptr;
  const HeartbeatCounts* heartbeats = nullptr;
  const Collective* collective = nullptr;
};
void CollectRank(const RankMeters& rank, MetricWriter& writer);

// Where the group's are, at its leader.
struct GroupMeters {
  std::string model_name;
  int ranks = 1;
  SchedulerOptions scheduler;
  const LoadBoard* board = nullptr;
  const Admission* admission = nullptr;
  const OutputRouter* router = nullptr;
  const RequestMeters* requests = nullptr;
  const StepMeter* steps = nullptr;
};
void CollectGroup(const GroupMeters& group, MetricWriter& writer);

}  // namespace lockstep
