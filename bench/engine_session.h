#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bench/roofline.h"
#include "worker/core/output_sink.h"
#include "worker/core/step_result.h"
#include "worker/runtime/rank.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep::bench {

using Clock = std::chrono::steady_clock;

// A group of one rank without gRPC: the product's scheduler and engine, a step
// at a time, with a record of how long each took and when each token came.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto session, EngineSession::Open(options));
//   session->Start();
//   session->Add({.prompt = …, .max_tokens = 128});
//   while (session->HasWork()) LOCKSTEP_RETURN_IF_ERROR(session->Step());
//   session->steps()…
//
// Greedy; no id ends a sequence. One thread.
class EngineSession {
 public:
  struct Request {
    std::vector<uint32_t> prompt;
    int max_tokens = 0;
    bool uses_prefix_cache = false;
    uint64_t grammar = 0;  // of rank().grammars(); 0: none
  };
  struct Stream {
    Clock::time_point added;
    std::vector<Clock::time_point> tokens;
    bool is_finished = false;
  };
  struct StepRecord {
    double seconds = 0;  // planned, executed and committed
    int sequences = 0;
    bool is_decode = false;  // one token of each sequence, and each samples
    StepWork work;
  };

  // Loads the model. REQUIRES: options.size == 1.
  static absl::StatusOr<std::unique_ptr<EngineSession>> Open(
      const RankOptions& options);
  ~EngineSession();

  // Forgets all sequences, records and cached prefixes. Before the first Add.
  void Start();

  // The number of its stream.
  uint64_t Add(const Request& request);

  bool HasWork() const { return scheduler_->HasWork(); }
  absl::Status Step();

  const std::vector<StepRecord>& steps() const { return steps_; }
  const Stream& stream(uint64_t number) const;
  uint64_t num_streams() const { return num_streams_; }

  Rank& rank() { return *rank_; }
  int max_context() const { return rank_->scheduler_options().max_context; }
  int max_sequences() const { return rank_->scheduler_options().max_sequences; }

 private:
  class Recorder;

  explicit EngineSession(std::unique_ptr<Rank> rank);

  const std::unique_ptr<Rank> rank_;
  std::unique_ptr<Recorder> recorder_;
  std::optional<Scheduler> scheduler_;
  uint64_t num_streams_ = 0;
  StepResult result_;
  std::vector<StepRecord> steps_;
};

}  // namespace lockstep::bench
