#include "tests/integration/grammar_group.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <utility>

#include "common/status_macros.h"
#include "tests/testing/grammar/tiny_token_bytes.h"
#include "worker/model_spec/shard.h"

namespace lockstep::testing {
namespace {

ModelEngine::Options EngineOptions(const SchedulerOptions& scheduler,
                                   GrammarStore* grammars,
                                   bool has_mask_thread) {
  return {.num_pages = scheduler.num_pages,
          .page_size = scheduler.page_size,
          .max_step_tokens = scheduler.max_step_tokens,
          .max_sequences = scheduler.max_sequences,
          .max_logits_rows = scheduler.max_logits_rows,
          .grammars = grammars,
          .has_mask_thread = has_mask_thread};
}

}  // namespace

GrammarGroup::GrammarGroup(const ModelFiles& model, int size,
                           const SchedulerOptions& scheduler,
                           bool has_mask_thread)
    : local_(LocalRanks::Create(size).value()), ranks_(size) {
  const absl::Status made =
      local_->Run([&](const LocalRank& local) -> absl::Status {
        auto rank = std::make_unique<Rank>();
        rank->grammars = std::make_unique<GrammarStore>(
            MakeTinyTokenBytes(),
            GrammarStore::Options{
                .vocab_size = static_cast<size_t>(model.config.vocab_size),
                .eos_token_ids = {kTinyEos}});
        LOCKSTEP_ASSIGN_OR_RETURN(
            const Shard shard, MakeShard(model.config, model.row_parallel_blocks,
                                         local.rank, size));
        LOCKSTEP_ASSIGN_OR_RETURN(
            rank->engine,
            ModelEngine::Create(model, shard,
                                EngineOptions(scheduler, rank->grammars.get(),
                                              has_mask_thread),
                                local.ops, local.collective));
        rank->scheduler =
            std::make_unique<Scheduler>(scheduler, &rank->outputs);
        ranks_[local.rank] = std::move(rank);
        return absl::OkStatus();
      });
  CHECK(made.ok()) << made;
}

uint64_t GrammarGroup::Prepare(const v1::Grammar& grammar) {
  ++last_grammar_;
  for (auto& rank : ranks_) rank->grammars->Prepare(last_grammar_, grammar);
  return last_grammar_;
}

void GrammarGroup::Release(uint64_t grammar) {
  for (auto& rank : ranks_) rank->grammars->Release(grammar);
}

uint64_t GrammarGroup::Add(v1::AddRequest request) {
  v1::RankMessage message;
  request.set_request(++last_request_);
  *message.mutable_add() = std::move(request);
  for (auto& rank : ranks_) {
    const absl::Status applied = rank->scheduler->Apply(message);
    CHECK(applied.ok()) << applied;
  }
  return last_request_;
}

absl::Status GrammarGroup::StepOne(Rank& rank) {
  const StepPlan& plan = rank.scheduler->Plan();
  rank.digest = plan.digest;
  if (!plan.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(rank.engine->Execute(plan, &rank.result));
  }
  rank.scheduler->Commit(rank.result);
  return absl::OkStatus();
}

absl::Status GrammarGroup::Step() {
  LOCKSTEP_RETURN_IF_ERROR(local_->Run([&](const LocalRank& local) {
    return StepOne(*ranks_[local.rank]);
  }));
  for (const auto& rank : ranks_) {
    if (rank->digest == ranks_[0]->digest) continue;
    return absl::DataLossError(absl::StrCat(
        "the digests of step ", stats().step, " differ between ranks."));
  }
  return absl::OkStatus();
}

absl::Status GrammarGroup::RunUntilIdle() {
  while (ranks_[0]->scheduler->HasWork()) LOCKSTEP_RETURN_IF_ERROR(Step());
  // The digest of the step after the last covers its tokens.
  return Step();
}

}  // namespace lockstep::testing
