#include "bench/engine_bench.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>

#include "bench/ceilings.h"
#include "bench/engine_session.h"
#include "bench/load_time.h"
#include "bench/rival.h"
#include "bench/roofline.h"
#include "bench/workload_runner.h"
#include "common/status_macros.h"
#include "hub/fetch_model.h"
#include "hub/hub_settings.h"
#include "worker/runtime/host_limits.h"
#include "worker/weights/model_files.h"

namespace lockstep::bench {
namespace {

constexpr char kWarmUp[] = "pp32,tg4";

int NumThreads(const RankOptions& options) {
  return options.threads > 0 ? options.threads
                             : static_cast<int>(UsableCores().size());
}

bool IsLoad(const Workload& workload) {
  return workload.kind == Workload::Kind::kLoad;
}

absl::Status RunAll(const EngineBenchOptions& options, WorkloadRunner& runner,
                    EngineReport* report) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Workload> warm_up,
                            ParseWorkloads(kWarmUp));
  for (const Workload& workload : warm_up) {
    if (!runner.CheckFits(workload).ok()) continue;
    LOCKSTEP_RETURN_IF_ERROR(runner.Run(workload).status());
  }
  for (const Workload& workload : options.workloads) {
    if (IsLoad(workload)) continue;
    EngineRow& row = report->rows.emplace_back();
    row.workload = workload.name;
    const absl::Status fits = runner.CheckFits(workload);
    if (!fits.ok()) {
      row.skipped = std::string(fits.message());
      continue;
    }
    for (int i = 0; i < options.repeat; ++i) {
      if (options.on_progress) {
        options.on_progress(absl::StrCat(workload.name, ", run ", i + 1, " of ",
                                         options.repeat));
      }
      LOCKSTEP_ASSIGN_OR_RETURN(row.runs.emplace_back(), runner.Run(workload));
      if (options.rival.empty()) continue;
      LOCKSTEP_ASSIGN_OR_RETURN(
          row.rival_tokens_per_s.emplace_back(),
          RunRival(options.rival, workload.name, options.rank.model));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EngineReport> RunEngineBench(const EngineBenchOptions& asked) {
  EngineReport report;
  report.model = asked.rank.model;
  EngineBenchOptions options = asked;
  LOCKSTEP_ASSIGN_OR_RETURN(
      options.rank.model,
      FetchModel(asked.rank.model, HubSettingsFromEnvironment(),
                 {.tell = asked.on_progress}));
  if (std::any_of(options.workloads.begin(), options.workloads.end(), IsLoad)) {
    for (int i = 0; i < options.repeat; ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(report.loads.emplace_back(),
                                MeasureLoad(options.rank));
    }
  }

  WorkloadRunner::Options runner_options;
  runner_options.arithmetic = options.rank.numerics.arithmetic;
  runner_options.ceilings = MeasureCeilings(NumThreads(options.rank));
  report.ceilings = runner_options.ceilings;
  {
    LOCKSTEP_ASSIGN_OR_RETURN(const ModelFiles files,
                              OpenModel(options.rank.model));
    LOCKSTEP_ASSIGN_OR_RETURN(runner_options.cost,
                              CostOf(files, options.rank.numerics.kv_type));
    runner_options.vocab_size = files.config.vocab_size;
  }
  report.weight_bytes =
      runner_options.cost.layer_bytes + runner_options.cost.head_bytes;
  report.kv_position_bytes = runner_options.cost.kv_position_bytes;

  LOCKSTEP_ASSIGN_OR_RETURN(const auto session,
                            EngineSession::Open(options.rank));
  report.description = session->rank().Description();
  WorkloadRunner runner(session.get(), runner_options);
  LOCKSTEP_RETURN_IF_ERROR(RunAll(options, runner, &report));
  return report;
}

}  // namespace lockstep::bench
