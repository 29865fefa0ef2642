#include "tests/goldens/golden_runner.h"

#include <absl/status/status.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "proto/group.pb.h"
#include "tests/testing/engine_group.h"
#include "worker/core/output_sink.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep::goldens {
namespace {

constexpr int kPageSize = 16;
// Few enough that the longer prompts take several steps.
constexpr int kMaxStepTokens = 128;
constexpr int kMaxSequences = 16;
constexpr int kMaxLogitsRows = 64;

// Requests are numbered from 1, in the order of the prompts.
class TokenCollector : public OutputSink {
 public:
  explicit TokenCollector(std::vector<GoldenAnswer>* answers)
      : answers_(answers) {}

  void OnFirstScheduled(SequenceId, int) override {}
  void OnPromptLogprobs(SequenceId,
                        std::vector<v1::PositionLogprobs>) override {}
  void OnToken(SequenceId id, uint32_t token,
               std::vector<v1::PositionLogprobs>) override {
    (*answers_)[id.request - 1].tokens.push_back(token);
  }
  void OnFinish(SequenceId, v1::FinishReason,
                std::optional<uint32_t>) override {}

 private:
  std::vector<GoldenAnswer>* const answers_;
};

int WantedRows(const GoldenPrompt& prompt) {
  return std::max(1, prompt.logits_rows);
}

v1::RankMessage MakeRequest(uint64_t number, const GoldenPrompt& prompt) {
  v1::RankMessage message;
  v1::AddRequest* request = message.mutable_add();
  request->set_request(number);
  request->mutable_prompt_token_ids()->Assign(prompt.ids.begin(),
                                              prompt.ids.end());
  v1::ResolvedSampling* sampling = request->mutable_sampling();
  sampling->set_top_p(1);
  sampling->set_repetition_penalty(1);
  sampling->set_max_tokens(prompt.greedy.size());
  sampling->set_n(1);
  // Makes the engine compute logits at every position.
  if (WantedRows(prompt) > 1) sampling->set_prompt_logprobs_plus_one(1);
  return message;
}

int PagesFor(absl::Span<const GoldenPrompt> prompts) {
  int pages = 0;
  for (const GoldenPrompt& prompt : prompts) {
    pages += (prompt.ids.size() + prompt.greedy.size()) / kPageSize + 2;
  }
  return pages;
}

// Appends to the answers the wanted logits, in the order of their positions.
ModelEngine::LogitsObserver CollectLogits(
    absl::Span<const GoldenPrompt> prompts,
    std::vector<GoldenAnswer>* answers) {
  return [=](const SequenceSpan& span, int position,
             absl::Span<const float> logits) {
    const size_t index = span.sequence->id().request - 1;
    const int end = span.sequence->num_prompt_tokens();
    const int begin = end - WantedRows(prompts[index]);
    if (position < begin || position >= end) return;
    (*answers)[index].logits.emplace_back(logits.begin(), logits.end());
  };
}

absl::Status RunToEnd(Scheduler* scheduler, Engine* engine) {
  StepResult result;
  while (scheduler->HasWork()) {
    const StepPlan& plan = scheduler->Plan();
    if (!plan.empty()) LOCKSTEP_RETURN_IF_ERROR(engine->Launch(plan));
    while (scheduler->MustCommit()) {
      const StepPlan& oldest = *scheduler->oldest();
      result.spans.resize(oldest.spans.size());
      if (!oldest.empty()) LOCKSTEP_RETURN_IF_ERROR(engine->Retire(&result));
      scheduler->Commit(result);
    }
  }
  return scheduler->CheckConservation();
}

}  // namespace

SchedulerOptions StepsOf(const ModelConfig& config,
                         absl::Span<const GoldenPrompt> prompts) {
  const int num_pages = PagesFor(prompts);
  return {.num_pages = num_pages,
          .page_size = kPageSize,
          .max_step_tokens = kMaxStepTokens,
          .max_sequences = kMaxSequences,
          .max_logits_rows = kMaxLogitsRows,
          .max_context = std::min(config.max_context, num_pages * kPageSize)};
}

absl::StatusOr<std::vector<GoldenAnswer>> AnswerWith(
    Engine* engine,
    const std::function<void(ModelEngine::LogitsObserver)>& show,
    const SchedulerOptions& steps, absl::Span<const GoldenPrompt> prompts) {
  std::vector<GoldenAnswer> answers(prompts.size());
  if (show) show(CollectLogits(prompts, &answers));
  TokenCollector collector(&answers);
  Scheduler scheduler(steps, &collector);
  for (size_t i = 0; i < prompts.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(scheduler.Apply(MakeRequest(i + 1, prompts[i])));
  }
  LOCKSTEP_RETURN_IF_ERROR(RunToEnd(&scheduler, engine));
  if (show) show(nullptr);
  return answers;
}

absl::StatusOr<std::vector<GoldenAnswer>> AnswerPrompts(
    const ModelFiles& model, const GroupCut& cut, const Numerics& numerics,
    absl::Span<const GoldenPrompt> prompts) {
  const SchedulerOptions steps = StepsOf(model.config, prompts);
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto engine, testing::EngineGroup::Create(
                       model, cut.size,
                       {.engine = {.num_pages = steps.num_pages,
                                   .page_size = steps.page_size,
                                   .max_step_tokens = steps.max_step_tokens,
                                   .max_sequences = steps.max_sequences,
                                   .max_logits_rows = steps.max_logits_rows,
                                   .arithmetic = numerics.arithmetic,
                                   .kv_type = numerics.kv_type},
                        .ranks = {.threads = cut.size == 1 ? 2 : 1},
                        .expert_parallel = cut.expert_parallel}));
  const auto show = [&](ModelEngine::LogitsObserver observer) {
    engine->engine(/*rank=*/0).set_logits_observer(std::move(observer));
  };
  return AnswerWith(engine.get(), show, steps, prompts);
}

}  // namespace lockstep::goldens
