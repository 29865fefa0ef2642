#include "tests/testing/scheduler_driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

void ExpectOk(const absl::Status& status) {
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace

SchedulerDriver::SchedulerDriver(const SchedulerOptions& options)
    : SchedulerDriver(options, &engine_) {}

SchedulerDriver::SchedulerDriver(const SchedulerOptions& options,
                                 Engine* engine)
    : options_(options),
      engine_({.num_pages = options.num_pages,
               .page_size = options.page_size,
               .vocabulary_size = kVocabularySize}),
      device_(*engine),
      scheduler_(options, &outputs_) {}

uint64_t SchedulerDriver::Add(v1::AddRequest request) {
  request.set_request(requests_.size() + 1);
  requests_.push_back(request);
  v1::RankMessage message;
  *message.mutable_add() = std::move(request);
  EXPECT_TRUE(scheduler_.Apply(message).ok());
  return requests_.size();
}

void SchedulerDriver::Abort(uint64_t request, std::vector<uint32_t> choices) {
  v1::RankMessage message;
  message.mutable_abort()->set_request(request);
  message.mutable_abort()->mutable_choices()->Assign(choices.begin(),
                                                     choices.end());
  EXPECT_TRUE(scheduler_.Apply(message).ok());
}

StepPlan SchedulerDriver::Step() {
  StepPlan plan;
  ExpectOk(TryStep(&plan));
  return plan;
}

absl::Status SchedulerDriver::TryStep(StepPlan* plan) {
  *plan = scheduler_.Plan();
  CheckLimits(*plan);
  if (!plan->empty()) LOCKSTEP_RETURN_IF_ERROR(device_.Launch(*plan));
  while (scheduler_.MustCommit()) {
    if (!scheduler_.oldest()->empty()) {
      LOCKSTEP_RETURN_IF_ERROR(device_.Retire(&result_));
    }
    scheduler_.Commit(result_);
  }
  ExpectOk(scheduler_.CheckConservation());
  return absl::OkStatus();
}

void SchedulerDriver::CheckLimits(const StepPlan& plan) {
  int tokens = 0;
  int rows = 0;
  for (const SequenceSpan& span : plan.spans) {
    EXPECT_GT(span.count, 0);
    tokens += span.count;
    rows += span.num_logits_rows();
  }
  EXPECT_EQ(tokens, plan.num_tokens);
  EXPECT_EQ(rows, plan.num_logits_rows);
  EXPECT_LE(tokens, options_.max_step_tokens);
  EXPECT_LE(rows, options_.max_logits_rows);
  EXPECT_LE(scheduler_.stats().running_sequences, options_.max_sequences);
}

void SchedulerDriver::RunUntilIdle() {
  while (scheduler_.HasWork()) Step();
}

void SchedulerDriver::ExpectAsAlone(uint64_t number) {
  const v1::AddRequest& add = request(number);
  for (uint32_t choice = 0; choice < add.sampling().n(); ++choice) {
    const OutputRecorder::Record& record = outputs_.of({number, choice});
    const FakeOutput alone =
        ContinueAlone(add, choice, options_.max_context, kVocabularySize);
    if (record.reason == v1::ABORTED) {
      EXPECT_LE(record.tokens.size(), alone.tokens.size());
      const size_t size = std::min(record.tokens.size(), alone.tokens.size());
      EXPECT_TRUE(std::equal(record.tokens.begin(),
                             record.tokens.begin() + size,
                             alone.tokens.begin()))
          << "request " << number << " choice " << choice;
    } else {
      EXPECT_EQ(record.tokens, alone.tokens)
          << "request " << number << " choice " << choice;
      EXPECT_EQ(record.reason, alone.reason)
          << "request " << number << " choice " << choice;
    }
  }
}

void SchedulerDriver::ExpectAllAsAlone() {
  for (uint64_t number = 1; number <= num_requests(); ++number) {
    ExpectAsAlone(number);
  }
}

v1::AddRequest MakeRequest(std::vector<uint32_t> prompt, uint32_t max_tokens) {
  v1::AddRequest request;
  request.mutable_prompt_token_ids()->Assign(prompt.begin(), prompt.end());
  v1::ResolvedSampling* sampling = request.mutable_sampling();
  sampling->set_temperature(1);
  sampling->set_top_p(1);
  sampling->set_repetition_penalty(1);
  sampling->set_max_tokens(max_tokens);
  sampling->set_n(1);
  return request;
}

v1::AddRequest ToEmbed(v1::AddRequest request, v1::Pooling pooling,
                       uint32_t dimensions) {
  request.clear_sampling();
  request.mutable_sampling()->set_n(1);
  request.mutable_embedding()->set_pooling(pooling);
  request.mutable_embedding()->set_dimensions(dimensions);
  return request;
}

std::vector<uint32_t> TokenRun(uint32_t first, int count) {
  std::vector<uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

}  // namespace lockstep
