#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/local_ranks.h"
#include "tests/testing/output_recorder.h"
#include "worker/engine/model_engine.h"
#include "worker/grammar/grammar_store.h"
#include "worker/scheduler/scheduler.h"
#include "worker/weights/model_files.h"

namespace lockstep::testing {

// The ranks of a group as threads, each with a scheduler, an engine and
// grammars of its own, told the same messages. After each step their digests
// must be equal.
//
//   GrammarGroup group(model, /*size=*/2, scheduler_options);
//   request.set_grammar(group.Prepare(grammar));
//   const uint64_t number = group.Add(request);
//   ASSERT_TRUE(group.RunUntilIdle().ok());
//   group.outputs().of({number, 0}).tokens;
class GrammarGroup {
 public:
  // `model`, of the tiny tokenizer's vocabulary, must outlive this.
  GrammarGroup(const ModelFiles& model, int size,
               const SchedulerOptions& scheduler, bool has_mask_thread = false);

  uint64_t Prepare(const v1::Grammar& grammar);
  void Release(uint64_t grammar);
  uint64_t Add(v1::AddRequest request);

  absl::Status Step();
  absl::Status RunUntilIdle();

  // Rank 0's.
  OutputRecorder& outputs() { return ranks_[0]->outputs; }
  SchedulerStats stats() { return ranks_[0]->scheduler->stats(); }

 private:
  struct Rank {
    OutputRecorder outputs;
    std::unique_ptr<GrammarStore> grammars;
    std::unique_ptr<ModelEngine> engine;
    std::unique_ptr<Scheduler> scheduler;
    StepResult result;
    Digest digest;
  };

  absl::Status StepOne(Rank& rank);

  const std::unique_ptr<LocalRanks> local_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  uint64_t last_request_ = 0;
  uint64_t last_grammar_ = 0;
};

}  // namespace lockstep::testing
