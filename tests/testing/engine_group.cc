#include "tests/testing/engine_group.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "common/status_macros.h"
#include "proto/group.pb.h"
#include "worker/model_spec/shard.h"

namespace lockstep::testing {

EngineGroup::EngineGroup(std::unique_ptr<LocalRanks> ranks)
    : ranks_(std::move(ranks)),
      engines_(ranks_->size()),
      results_(ranks_->size()),
      plans_(ranks_->size()),
      twins_(ranks_->size()) {}

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
    return engines_[rank.rank]->Execute(PlanOf(rank.rank, plan),
                                        &results_[rank.rank]);
  }));
  for (int rank = 1; rank < ranks_->size(); ++rank) {
    LOCKSTEP_RETURN_IF_ERROR(CheckEqual(plan, rank));
  }
  *result = results_[0];
  return absl::OkStatus();
}

const StepPlan& EngineGroup::PlanOf(int rank, const StepPlan& plan) {
  if (rank == 0) return plan;
  plans_[rank] = plan;
  for (SequenceSpan& span : plans_[rank].spans) {
    const Sequence& sequence = *span.sequence;
    if (!sequence.is_embedded()) continue;
    std::unique_ptr<Sequence>& twin = twins_[rank][sequence.id()];
    if (twin == nullptr) {
      twin = std::make_unique<Sequence>(
          sequence.id(),
          std::make_shared<const v1::AddRequest>(sequence.request()));
    }
    twin->mutable_pages().assign(sequence.pages().begin(),
                                 sequence.pages().end());
    span.sequence = twin.get();
  }
  return plans_[rank];
}

absl::Status EngineGroup::CheckEqual(const StepPlan& plan, int rank) const {
  for (int i = 0; i < plan.spans.size(); ++i) {
    const SpanResult& found = results_[rank].spans[i];
    const SpanResult& expected = results_[0].spans[i];
    if (found.is_finite != expected.is_finite) {
      return absl::InternalError(absl::StrCat("only one of the ranks 0 and ",
                                              rank, " has a number for span ",
                                              i, " of step ", plan.step));
    }
    if (!found.is_finite) continue;
    if (found.token != expected.token) {
      return absl::InternalError(absl::StrCat(
          "rank ", rank, " sampled ", found.token, " for span ", i, " of step ",
          plan.step, ", rank 0 sampled ", expected.token));
    }
    if (plan.spans[i].embeds && found.embedding != expected.embedding) {
      return absl::InternalError(absl::StrCat("ranks 0 and ", rank,
                                              " made different embeddings of "
                                              "span ",
                                              i, " of step ", plan.step));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep::testing
