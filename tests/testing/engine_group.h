#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <vector>

#include "tests/testing/local_ranks.h"
#include "worker/engine/model_engine.h"
#include "worker/weights/model_files.h"

namespace lockstep::testing {

// The engines of all ranks of a group, ranks as threads, behind the interface
// of one. Every rank must come to the same tokens.
//
//   auto group = EngineGroup::Create(model, /*size=*/4, {.engine = {…}});
//   (*group)->Execute(plan, &result);
class EngineGroup final : public Engine {
 public:
  struct Options {
    ModelEngine::Options engine;
    LocalRanks::Options ranks;
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

  const std::unique_ptr<LocalRanks> ranks_;
  std::vector<std::unique_ptr<ModelEngine>> engines_;
  std::vector<StepResult> results_;
};

}  // namespace lockstep::testing
