// How fast a gateway answers many streaming clients; docs/benchmarks.md.
//
//   serving_bench --target=HOST:PORT --clients=32 --json
//
// With --model, the engine alone does the same work first, in this process; the
// flags of a worker that concern its engine are flags of this program too.

#include <absl/strings/str_cat.h>
#include <gflags/gflags.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/engine_bench.h"
#include "bench/engine_report.h"
#include "bench/run_program.h"
#include "bench/serving/serving_clients.h"
#include "bench/serving/serving_report.h"
#include "bench/workload.h"
#include "bench/workload_runner.h"
#include "common/flag_check.h"
#include "common/status_macros.h"
#include "worker/options.h"

DEFINE_string(target, "", "host:port of the gateway. Required.");
DEFINE_int32(clients, 32, "Clients that stream at the same time.");
DEFINE_int32(repeat, 3, "Runs, of which the median counts.");
DEFINE_bool(json, false, "Print JSON instead of a table.");
DECLARE_string(model);

namespace lockstep::bench {
namespace {

// The same traffic in this process.
absl::StatusOr<std::vector<RunResult>> RunEngineAlone() {
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerOptions worker, OptionsFromFlags());
  EngineBenchOptions options;
  options.rank = worker.rank;
  options.repeat = FLAGS_repeat;
  LOCKSTEP_ASSIGN_OR_RETURN(
      options.workloads, ParseWorkloads(absl::StrCat("serve", FLAGS_clients)));
  LOCKSTEP_ASSIGN_OR_RETURN(EngineReport report, RunEngineBench(options));
  EngineRow& row = report.rows.front();
  if (row.runs.empty()) return absl::OutOfRangeError(row.skipped);
  return std::move(row.runs);
}

absl::Status Run() {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckAddressFlag("target", FLAGS_target, /*least_port=*/1));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("clients", FLAGS_clients, 1, 1024));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("repeat", FLAGS_repeat, 1, 1000));

  ServingReport report;
  report.traffic.clients = FLAGS_clients;
  if (!FLAGS_model.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(report.engine, RunEngineAlone());
  }
  for (int i = 0; i < FLAGS_repeat; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        report.served.emplace_back(),
        RunServingClients({.target = FLAGS_target, .traffic = report.traffic}));
  }
  const std::string text =
      FLAGS_json ? ToJson(report).dump(2) + "\n" : ToText(report);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::RunProgram("serving_bench",
                                     "load for a Lockstep gateway.", argc, argv,
                                     lockstep::bench::Run);
}
