// What grammars cost a decode step: streams with a JSON schema beside the same
// streams without; docs/structured_output.md.
//
//   grammar_bench --model=FILE --threads=2 --streams=32
//
// All flags of a worker that concern its engine are flags of this program too.

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "bench/engine_session.h"
#include "bench/run_program.h"
#include "common/flag_check.h"
#include "common/status_macros.h"
#include "worker/options.h"

DEFINE_int32(streams, 32, "Sequences that decode at a time.");
DEFINE_int32(tokens, 64, "Tokens of each.");
DEFINE_int32(repeat, 5, "Runs with grammars and without, in turns.");

namespace lockstep::bench {
namespace {

// Long enough not to end: texts, numbers, names and white space all come.
constexpr char kSchema[] = R"({
  "type": "array", "minItems": 100,
  "items": {"type": "object",
            "properties": {"name": {"type": "string"},
                           "price": {"type": "number", "minimum": 0},
                           "tags": {"type": "array",
                                    "items": {"enum": ["new", "used", "sold"]}},
                           "stock": {"type": "integer"}},
            "required": ["name", "price", "stock"],
            "additionalProperties": false}})";

// Of the steps in which all streams decode, the mean, in milliseconds: on the
// clock, and of processor time, which a busy machine changes less. With several
// threads the latter has their waiting in it.
struct StepTime {
  double wall_ms = 0;
  double cpu_ms = 0;
};

absl::StatusOr<StepTime> Measure(EngineSession& session, uint64_t grammar) {
  constexpr int kPromptTokens = 16;
  session.Start();
  for (int i = 0; i < FLAGS_streams; ++i) {
    std::vector<uint32_t> prompt;
    for (int k = 0; k < kPromptTokens; ++k) prompt.push_back(100 + 37 * i + k);
    session.Add({.prompt = std::move(prompt),
                 .max_tokens = FLAGS_tokens,
                 .grammar = grammar});
  }
  StepTime sum;
  int steps = 0;
  while (session.HasWork()) {
    const std::clock_t begin = std::clock();
    LOCKSTEP_RETURN_IF_ERROR(session.Step());
    const double cpu_s = 1.0 * (std::clock() - begin) / CLOCKS_PER_SEC;
    const EngineSession::StepRecord& step = session.steps().back();
    if (!step.is_decode || step.sequences < FLAGS_streams) continue;
    ++steps;
    sum.wall_ms += 1000 * step.seconds;
    sum.cpu_ms += 1000 * cpu_s;
  }
  if (steps == 0) return absl::InternalError("no step had all streams.");
  return StepTime{sum.wall_ms / steps, sum.cpu_ms / steps};
}

double Median(const std::vector<StepTime>& runs, double StepTime::*time) {
  std::vector<double> values;
  for (const StepTime& run : runs) values.push_back(run.*time);
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Print(const char* what, const std::vector<StepTime>& without,
           const std::vector<StepTime>& with, double StepTime::*time) {
  const double before = Median(without, time), after = Median(with, time);
  std::printf("%s: %.3f ms a step, %.3f with grammars: %+.1f %%\n", what,
              before, after, 100 * (after - before) / before);
}

absl::Status Run() {
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("streams", FLAGS_streams, 1, 1024));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("tokens", FLAGS_tokens, 4, 4096));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("repeat", FLAGS_repeat, 1, 1000));
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerOptions worker, OptionsFromFlags());
  LOCKSTEP_ASSIGN_OR_RETURN(const auto session,
                            EngineSession::Open(worker.rank));
  v1::Grammar grammar;
  grammar.set_json_schema(kSchema);
  session->rank().grammars()->Prepare(1, grammar);
  LOCKSTEP_RETURN_IF_ERROR(session->rank().grammars()->Begin(1).status());
  std::vector<StepTime> without, with;
  for (int i = 0; i < FLAGS_repeat; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(without.emplace_back(), Measure(*session, 0));
    LOCKSTEP_ASSIGN_OR_RETURN(with.emplace_back(), Measure(*session, 1));
  }
  Print("on the clock", without, with, &StepTime::wall_ms);
  Print("processor time", without, with, &StepTime::cpu_ms);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::RunProgram(
      "grammar_bench", "what grammars cost a Lockstep worker's steps.", argc,
      argv, lockstep::bench::Run);
}
