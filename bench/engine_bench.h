#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/engine_report.h"
#include "bench/workload.h"
#include "worker/runtime/rank.h"

namespace lockstep::bench {

struct EngineBenchOptions {
  RankOptions rank;
  std::vector<Workload> workloads;
  int repeat = 5;
  std::string rival;  // RunRival's command; empty: none
  // Told what goes on, a line at a time. May be empty.
  std::function<void(const std::string&)> on_progress;
};

// Loads the model, as often as a `load` workload repeats, and measures the
// machine's ceilings; then, in one session and after a run that does not count,
// each workload: ours, the rival's, ours, … A workload that does not fit is
// skipped and says so.
absl::StatusOr<EngineReport> RunEngineBench(const EngineBenchOptions& options);

}  // namespace lockstep::bench
