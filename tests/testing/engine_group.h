#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <vector>

#include "tests/testing/local_ranks.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/engine/model_engine.h"
#include "worker/engine/synchronous_engine.h"
#include "worker/weights/model_files.h"

namespace lockstep::testing {

// The engines of all ranks of a group, ranks as threads, behind the interface
// of one. Every rank must come to the same tokens and embeddings.
//
//   auto group = EngineGroup::Create(model, /*size=*/4, {.engine = {…}});
//   (*group)->Execute(plan, &result);
class EngineGroup final : public SynchronousEngine {
 public:
  struct Options {
    ModelEngine::Options engine;
    LocalRanks::Options ranks = {};
    bool expert_parallel = false;
  };

  // `model` must outlive the group.
  static absl::StatusOr<std::unique_ptr<EngineGroup>> Create(
      const ModelFiles& model, int size, const Options& options);

  absl::Status Execute(const StepPlan& plan, StepResult* result) override;

  ModelEngine& engine(int rank) { return *engines_[rank]; }
  LocalRanks& ranks() { return *ranks_; }

 private:
  explicit EngineGroup(std::unique_ptr<LocalRanks> ranks);
  // What an engine keeps of a sequence is its rank's own, so each further rank
  // has twins of the sequences that are embedded.
  const StepPlan& PlanOf(int rank, const StepPlan& plan);
  absl::Status CheckEqual(const StepPlan& plan, int rank) const;

  const std::unique_ptr<LocalRanks> ranks_;
  std::vector<std::unique_ptr<ModelEngine>> engines_;
  std::vector<StepResult> results_;
  std::vector<StepPlan> plans_;
  std::vector<std::map<SequenceId, std::unique_ptr<Sequence>>> twins_;
};

}  // namespace lockstep::testing
