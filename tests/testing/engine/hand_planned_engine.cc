#include "tests/testing/engine/hand_planned_engine.h"

#include <glog/logging.h>

#include <utility>

#include "proto/group.pb.h"

namespace lockstep::testing {
namespace {

// Room for what a sequence will generate.
constexpr int kMoreTokens = 32;

std::unique_ptr<EngineGroup> MakeGroup(const ModelFiles& model, int size,
                                       const EngineGroup::Options& options) {
  auto group = EngineGroup::Create(model, size, options);
  CHECK(group.ok()) << group.status();
  return *std::move(group);
}

SequenceSpan MakeSpan(const Sequence& sequence, int count, bool all_logits) {
  SequenceSpan span;
  span.sequence = &sequence;
  span.begin = sequence.num_computed();
  span.count = count;
  const int end = span.begin + span.count;
  span.samples = end == sequence.num_tokens();
  if (all_logits) {
    span.prompt_logits_begin = span.begin;
    span.prompt_logits_end = span.samples ? end - 1 : end;
  }
  return span;
}

}  // namespace

HandPlannedEngine::HandPlannedEngine(const ModelFiles& model, int size,
                                     const EngineGroup::Options& options)
    : group_(MakeGroup(model, size, options)),
      engine_(group_.get()),
      pages_{options.engine.num_pages, options.engine.page_size} {
  group_->engine(/*rank=*/0).set_logits_observer(Observer());
}

HandPlannedEngine::HandPlannedEngine(
    Engine* engine,
    const std::function<void(ModelEngine::LogitsObserver)>& show,
    const Pages& pages)
    : engine_(engine), pages_(pages) {
  show(Observer());
}

ModelEngine::LogitsObserver HandPlannedEngine::Observer() {
  return [this](const SequenceSpan& span, int position,
                absl::Span<const float> logits) {
    auto& rows = logits_[span.sequence->id().request];
    if (rows.size() <= position) rows.resize(position + 1);
    rows[position].assign(logits.begin(), logits.end());
  };
}

int HandPlannedEngine::Add(std::vector<uint32_t> tokens) {
  const int index = static_cast<int>(sequences_.size());
  auto request = std::make_shared<v1::AddRequest>();
  request->set_request(index);
  request->mutable_prompt_token_ids()->Assign(tokens.begin(), tokens.end());
  v1::ResolvedSampling* sampling = request->mutable_sampling();
  sampling->set_top_p(1);
  sampling->set_repetition_penalty(1);
  sampling->set_prompt_logprobs_plus_one(1);
  auto sequence = std::make_unique<Sequence>(
      SequenceId{static_cast<uint64_t>(index), 0}, request);
  const int pages =
      (tokens.size() + kMoreTokens + pages_.size - 1) / pages_.size;
  for (int i = 0; i < pages; ++i) {
    // From the last page on down.
    sequence->mutable_pages().push_back(pages_.count - 1 - pages_taken_++);
  }
  CHECK_LE(pages_taken_, pages_.count);
  sequences_.push_back(std::move(sequence));
  logits_.emplace_back();
  return index;
}

StepResult HandPlannedEngine::Step(const std::vector<Part>& parts,
                                   bool all_logits) {
  StepPlan plan;
  plan.step = ++step_;
  for (const Part& part : parts) {
    const SequenceSpan span =
        MakeSpan(*sequences_[part.sequence], part.count, all_logits);
    plan.spans.push_back(span);
    plan.num_tokens += span.count;
    plan.num_logits_rows += span.num_logits_rows();
  }
  StepResult result;
  const absl::Status status = engine_->Execute(plan, &result);
  CHECK(status.ok()) << status;
  for (size_t i = 0; i < parts.size(); ++i) {
    const SequenceSpan& span = plan.spans[i];
    Sequence& sequence = *sequences_[parts[i].sequence];
    sequence.set_num_computed(span.begin + span.count);
    if (span.samples) sequence.AppendToken(result.spans[i].token);
  }
  return result;
}

}  // namespace lockstep::testing
