#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "bench/ceilings.h"
#include "bench/engine_session.h"
#include "bench/roofline.h"
#include "bench/traffic.h"
#include "bench/workload.h"
#include "kernels/weights/arithmetic.h"

namespace lockstep::bench {

// One run of a workload.
struct RunResult {
  // Of the tokens that the workload is about: prompt tokens of ppN, generated
  // ones of the others; of bN and ctxN while all sequences decode.
  double tokens_per_s = 0;
  double roof_tokens_per_s = 0;  // the same steps at their roofs
  std::string bound;             // what most of that time is
  int64_t computed_tokens = 0;   // in those steps, prompts' and others
  std::vector<double> step_s;    // of those steps
  // Of every stream that came in this run.
  std::vector<double> first_token_s;
  std::vector<double> inter_token_s;
};

// Runs workloads on a session, with random prompts, equal in each run. All but
// kLoad, which needs no session.
//
//   LOCKSTEP_RETURN_IF_ERROR(runner.CheckFits(workload));
//   LOCKSTEP_ASSIGN_OR_RETURN(const RunResult result, runner.Run(workload));
class WorkloadRunner {
 public:
  struct Options {
    ModelCost cost;
    kernels::Arithmetic arithmetic = kernels::Arithmetic::kStrict;
    Ceilings ceilings;
    uint32_t vocab_size = 0;
  };

  // `session` must outlive this.
  WorkloadRunner(EngineSession* session, const Options& options)
      : session_(session), options_(options) {}

  // OUT_OF_RANGE says what the workload takes and what the session has.
  absl::Status CheckFits(const Workload& workload) const;

  absl::StatusOr<RunResult> Run(const Workload& workload);

 private:
  std::vector<uint32_t> Prompt(int tokens);
  absl::Status RunUntilIdle();
  absl::StatusOr<RunResult> RunPrefill(int tokens);
  absl::StatusOr<RunResult> RunDecode(int tokens);
  absl::StatusOr<RunResult> RunBatch(int sequences);
  absl::StatusOr<RunResult> RunContext(int tokens);
  absl::StatusOr<RunResult> RunServe(const Traffic& traffic);
  absl::StatusOr<RunResult> RunPrefixCache(bool uses_prefix_cache);

  // Of all steps from `first` on, in which `tokens` came.
  RunResult Sum(const std::vector<EngineSession::StepRecord>& steps,
                double tokens, double seconds) const;
  // Of the steps from `first` on in which `sequences` decode and nothing else
  // happens.
  RunResult SumDecode(size_t first, int sequences) const;
  void AddLatencies(uint64_t first_stream, RunResult* result) const;

  EngineSession* const session_;
  const Options options_;
  std::mt19937 random_;
  int cached_context_ = 0;  // tokens of the prompt in the prefix cache
};

}  // namespace lockstep::bench
