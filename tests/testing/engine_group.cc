#include "tests/testing/engine_group.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "common/status_macros.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/engine/engine.h"
#include "worker/model_spec/shard.h"

namespace lockstep::testing {

EngineGroup::EngineGroup(std::unique_ptr<LocalRanks> ranks)
    : ranks_(std::move(ranks)),
      engines_(ranks_->size()),
      results_(ranks_->size()) {}

absl::StatusOr<std::unique_ptr<EngineGroup>> EngineGroup::Create(
    const ModelFiles& model, int size, const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto ranks,
                            LocalRanks::Create(size, options.ranks));
  std::unique_ptr<EngineGroup> group(new EngineGroup(std::move(ranks)));
  const auto create = [&](const LocalRank& rank) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const Shard shard, MakeShard(model.config, model.row_parallel_blocks,
                                     rank.rank, size, options.expert_parallel));
    LOCKSTEP_ASSIGN_OR_RETURN(group->engines_[rank.rank],
                              ModelEngine::Create(model, shard, options.engine,
                                                  rank.ops, rank.collective));
    return absl::OkStatus();
  };
  LOCKSTEP_RETURN_IF_ERROR(group->ranks_->Run(create));
  return group;
}

absl::Status EngineGroup::Execute(const StepPlan& plan, StepResult* result) {
  LOCKSTEP_RETURN_IF_ERROR(ranks_->Run([&](const LocalRank& rank) {
    return engines_[rank.rank]->Execute(plan, &results_[rank.rank]);
  }));
  for (int rank = 1; rank < ranks_->size(); ++rank) {
    for (int i = 0; i < plan.spans.size(); ++i) {
      const uint32_t token = results_[rank].spans[i].token;
      const uint32_t expected = results_[0].spans[i].token;
      if (token == expected) continue;
      return absl::InternalError(
          absl::StrCat("rank ", rank, " sampled ", token, " for span ", i,
                       " of step ", plan.step, ", rank 0 sampled ", expected));
    }
  }
  *result = results_[0];
  return absl::OkStatus();
}

}  // namespace lockstep::testing
