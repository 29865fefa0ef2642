// What a gateway costs in front of a worker that computes nothing;
// docs/benchmarks.md.
//
//   gateway_bench --gateway=PATH --model=FILE

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/gateway/echo_pace.h"
#include "bench/gateway/echo_worker.h"
#include "bench/gateway/gateway_process.h"
#include "bench/gateway/measured_process.h"
#include "bench/gateway/streams.h"
#include "bench/gateway/vllm_echo_engine.h"
#include "bench/run_program.h"
#include "bench/spread.h"
#include "bench/text_table.h"
#include "common/flag_check.h"
#include "common/status_macros.h"

DEFINE_string(gateway, "", "The binary. Required.");
DEFINE_string(model, "", "For its tokenizer. Required.");
DEFINE_string(rival, "",
              "A shell command that starts another gateway, on {port} in front "
              "of an engine at {engine} that speaks the gRPC of vLLM's; it is "
              "asked over HTTP, as echo, in turns with ours.");
DEFINE_int32(vocabulary_size, 49152, "Of that tokenizer.");
DEFINE_int32(streams, 64, "Streams at the same time.");
DEFINE_int32(rate, 1000,
             "Tokens a second of all streams, where they are paced.");
DEFINE_int32(seconds, 10, "Of a paced run.");
DEFINE_int32(tokens, 2000, "Of each stream, where they are not.");
DEFINE_int32(repeat, 3, "Runs of each kind, of which the median counts.");

namespace lockstep::bench {
namespace {

using Ask = absl::StatusOr<StreamsResult> (*)(const StreamsOptions& options,
                                              const SentTimes& sent);

struct Door {
  const char* name;
  Ask ask;
  std::string target;
  const GatewayProcess* gateway;  // null: there is none between

  double CpuSeconds() const {
    return gateway == nullptr ? 0 : gateway->process().CpuSeconds();
  }
};

struct Pace {
  const char* name;
  EchoPace pace;
  uint32_t tokens;
};

// The same engine in two protocols.
struct Engines {
  std::unique_ptr<EchoWorker> worker;
  std::unique_ptr<VllmEchoEngine> vllm;
};

// Runs of one kind: the spread of each figure.
struct Runs {
  std::vector<double> tokens_per_s, p50_ms, p99_ms, cpu_us;

  void Add(const StreamsResult& result, double cpu_s) {
    tokens_per_s.push_back(result.tokens / result.seconds);
    p50_ms.push_back(1000 * Percentile(result.latency_s, 0.5));
    p99_ms.push_back(1000 * Percentile(result.latency_s, 0.99));
    cpu_us.push_back(1e6 * cpu_s / result.tokens);
  }
};

std::string Cell(const std::vector<double>& values, int digits) {
  const Spread spread = SpreadOf(values);
  return absl::StrFormat("%.*f (%.*f-%.*f)", digits, spread.median, digits,
                         spread.least, digits, spread.most);
}

absl::Status RunOne(const Door& door, const Pace& pace, const SentTimes& sent,
                    Runs* runs) {
  const double before = door.CpuSeconds();
  LOCKSTEP_ASSIGN_OR_RETURN(
      const StreamsResult result,
      door.ask(
          {.target = door.target,
           .streams = FLAGS_streams,
           .tokens = pace.tokens,
           .stagger = pace.pace.in_steps ? SteadyClock::duration::zero()
                                         : pace.pace.interval / FLAGS_streams},
          sent));
  runs->Add(result, door.CpuSeconds() - before);
  return absl::OkStatus();
}

// Each door in its turn.
absl::Status RunPace(const Pace& pace, const std::vector<Door>& doors,
                     const Engines& engines, const SentTimes& sent,
                     TextTable* table) {
  engines.worker->set_pace(pace.pace);
  engines.vllm->set_pace(pace.pace);
  std::vector<Runs> runs(doors.size());
  for (int i = 0; i < FLAGS_repeat; ++i) {
    for (size_t door = 0; door < doors.size(); ++door) {
      LOCKSTEP_RETURN_IF_ERROR(RunOne(doors[door], pace, sent, &runs[door]));
    }
  }
  for (size_t door = 0; door < doors.size(); ++door) {
    table->Add({pace.name, doors[door].name, Cell(runs[door].tokens_per_s, 0),
                Cell(runs[door].p50_ms, 3), Cell(runs[door].p99_ms, 3),
                Cell(runs[door].cpu_us, 1)});
  }
  return absl::OkStatus();
}

void PrintMemory(const char* whose, const MeasuredProcess& process) {
  std::printf("%s holds %.0f MiB and held %.0f at most\n", whose,
              process.ResidentMib(), process.MostResidentMib());
}

absl::Status CheckFlags() {
  for (const auto& [flag, value] :
       {std::pair{"gateway", FLAGS_gateway}, std::pair{"model", FLAGS_model}}) {
    if (!value.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat("--", flag, " is not set."));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("streams", FLAGS_streams, 1, 1000));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("rate", FLAGS_rate, 1, 1'000'000));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("seconds", FLAGS_seconds, 1, 3600));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("tokens", FLAGS_tokens, 1, 100'000));
  return CheckRangeFlag("repeat", FLAGS_repeat, 1, 1000);
}

absl::Status Run() {
  LOCKSTEP_RETURN_IF_ERROR(CheckFlags());
  const auto interval = std::chrono::duration_cast<SteadyClock::duration>(
      std::chrono::duration<double>(1.0 * FLAGS_streams / FLAGS_rate));
  const uint32_t paced_tokens =
      std::max(1, FLAGS_rate * FLAGS_seconds / FLAGS_streams);
  const Pace kPaces[] = {
      {"even", {interval, /*in_steps=*/false}, paced_tokens},
      {"in steps", {interval, /*in_steps=*/true}, paced_tokens},
      {"unpaced", {}, static_cast<uint32_t>(FLAGS_tokens)},
  };
  SentTimes sent(FLAGS_streams, std::max<size_t>(paced_tokens, FLAGS_tokens));
  const uint32_t vocabulary_size = FLAGS_vocabulary_size;
  Engines engines;
  LOCKSTEP_ASSIGN_OR_RETURN(engines.worker,
                            EchoWorker::Start(vocabulary_size, &sent));
  LOCKSTEP_ASSIGN_OR_RETURN(engines.vllm,
                            VllmEchoEngine::Start(vocabulary_size, &sent));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const GatewayProcess gateway,
      GatewayProcess::Start(
          FLAGS_gateway,
          {"--model=" + FLAGS_model, "--workers=" + engines.worker->address(),
           "--max_inflight_requests=2048"}));
  std::vector<Door> doors = {
      {"worker", StreamFromWorker, engines.worker->address(), nullptr},
      {"gRPC", StreamOverGrpc, gateway.grpc_address(), &gateway},
      {"HTTP", StreamOverHttp, gateway.http_address(), &gateway},
  };
  std::optional<GatewayProcess> rival;
  if (!FLAGS_rival.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(rival, GatewayProcess::StartRival(
                                         FLAGS_rival, engines.vllm->address()));
    doors.push_back({"rival", StreamOverHttp, rival->http_address(), &*rival});
  }
  TextTable table;
  table.Add({"pace", "door", "tokens/s", "p50 ms", "p99 ms", "CPU us a token"});
  for (const Pace& pace : kPaces) {
    LOCKSTEP_RETURN_IF_ERROR(RunPace(pace, doors, engines, sent, &table));
  }
  std::printf("%s\n", table.ToText().c_str());
  PrintMemory("the gateway", gateway.process());
  if (rival.has_value()) PrintMemory("the rival", rival->process());
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::RunProgram("gateway_bench",
                                     "what a Lockstep gateway costs.", argc,
                                     argv, lockstep::bench::Run);
}
