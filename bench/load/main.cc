// Loads a gateway as many people would, and says what they saw:
// docs/load.md.
//
//   load --target=HOST:PORT --rate=5 --seconds=60 --html=report.html

#include <absl/status/status.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/load/grpc_transport.h"
#include "bench/load/html_report.h"
#include "bench/load/http_transport.h"
#include "bench/load/load_options.h"
#include "bench/load/load_run.h"
#include "bench/load/runner.h"
#include "bench/load/summary.h"
#include "bench/load/text_file.h"
#include "bench/run_program.h"
#include "common/status_macros.h"

namespace lockstep::bench {
namespace {

absl::StatusOr<std::vector<LoadRun>> ReadRuns(
    const std::vector<std::string>& paths) {
  std::vector<LoadRun> runs;
  for (const std::string& path : paths) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
    LOCKSTEP_ASSIGN_OR_RETURN(runs.emplace_back(), ParseRun(text, path));
  }
  return runs;
}

absl::StatusOr<std::vector<LoadRun>> LoadTarget(const LoadOptions& options) {
  std::unique_ptr<Transport> transport;
  if (options.is_openai) {
    transport =
        std::make_unique<HttpTransport>(options.target, options.api_key);
  } else {
    transport =
        std::make_unique<GrpcTransport>(options.target, options.connections);
  }
  LoadRun run = RunLoad(options.run, *transport);
  run.label = options.label;
  run.options = options.given;
  if (!options.out.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(
        WriteTextFile(options.out, ToJson(run).dump() + "\n"));
  }
  std::vector<LoadRun> runs;
  runs.push_back(std::move(run));
  return runs;
}

absl::Status Execute() {
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadOptions options, LoadOptionsFromFlags());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<LoadRun> runs,
                            options.compare.empty()
                                ? LoadTarget(options)
                                : ReadRuns(options.compare));
  const std::vector<Summary> summaries = SummarizeEach(runs, options.slo);
  std::fputs(ToText(summaries, options.slo).c_str(), stdout);
  if (options.html.empty()) return absl::OkStatus();
  return WriteTextFile(options.html, ToHtml(runs, summaries, options.slo));
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::RunProgram(
      "load", "load for a gateway, and what its clients see.", argc, argv,
      lockstep::bench::Execute);
}
