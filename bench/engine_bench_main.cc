// How fast the engine is, without gRPC, against this machine's limits and
// against a rival; docs/benchmarks.md.
//
//   engine_bench --model=FILE --threads=2 --workloads=pp512,tg128,b8,b32 --json
//
// All flags of a worker that concern its engine are flags of this program too.

#include <gflags/gflags.h>

#include <cstdio>
#include <string>

#include "bench/engine_bench.h"
#include "bench/engine_report.h"
#include "bench/run_program.h"
#include "bench/workload.h"
#include "common/flag_check.h"
#include "common/status_macros.h"
#include "worker/options.h"

DEFINE_string(workloads, "load,pp512,tg128,b1,b4,b8,b16,b32,b64,prefix",
              "What to run: ppN, tgN, bN, ctxN, serveN, prefix, load.");
DEFINE_int32(repeat, 5, "Runs of each workload, of which the median counts.");
DEFINE_bool(json, false, "Print JSON instead of a table.");
DEFINE_string(
    rival, "",
    "A shell command that prints one number, tokens a second; "
    "{workload} and {model} are replaced. It runs in turns with ours.");

namespace lockstep::bench {
namespace {

absl::Status Run() {
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("repeat", FLAGS_repeat, 1, 1000));
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerOptions worker, OptionsFromFlags());
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("tensor_parallel_size", worker.rank.size, 1, 1));
  EngineBenchOptions options;
  options.rank = worker.rank;
  options.repeat = FLAGS_repeat;
  LOCKSTEP_ASSIGN_OR_RETURN(options.workloads, ParseWorkloads(FLAGS_workloads));
  options.rival = FLAGS_rival;
  options.on_progress = [](const std::string& line) {
    std::fprintf(stderr, "%s\n", line.c_str());
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const EngineReport report, RunEngineBench(options));
  const std::string text =
      FLAGS_json ? ToJson(report).dump(2) + "\n" : ToText(report);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::RunProgram(
      "engine_bench", "speed of the engine of a Lockstep worker.", argc, argv,
      lockstep::bench::Run);
}
