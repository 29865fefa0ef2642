#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/fake_engine.h"
#include "tests/testing/output_recorder.h"
#include "tests/testing/scheduler_driver.h"
#include "worker/core/step_plan.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

SchedulerOptions Options() {
  return {.num_pages = 64,
          .page_size = 4,
          .max_step_tokens = 16,
          .max_sequences = 4,
          .max_logits_rows = 4,
          .max_context = 64};
}

v1::AddRequest Embed(std::vector<uint32_t> prompt,
                     v1::Pooling pooling = v1::LAST_TOKEN) {
  return ToEmbed(MakeRequest(std::move(prompt), 1), pooling, 3);
}

class SchedulerEmbeddingTest : public ::testing::Test {
 protected:
  void ExpectEmbedded(uint64_t number) {
    const v1::AddRequest& request = driver_.request(number);
    const auto& record = driver_.outputs().of({number, 0});
    EXPECT_EQ(record.embedding,
              FakeEmbedding(request.prompt_token_ids(), request.embedding()));
    EXPECT_THAT(record.tokens, IsEmpty());
    EXPECT_EQ(record.reason, v1::STOP);
  }
  int CachedTokens(uint64_t number) {
    return driver_.outputs().of({number, 0}).cached_tokens.value();
  }

  SchedulerDriver driver_{Options()};
};

TEST_F(SchedulerEmbeddingTest, EndsWhenItsPromptIsComputed) {
  const uint64_t request = driver_.Add(Embed(TokenRun(1, 10)));
  driver_.Step();
  ExpectEmbedded(request);
  EXPECT_FALSE(driver_.scheduler().HasWork());
}

TEST_F(SchedulerEmbeddingTest, APromptMayFillTheContext) {
  const uint64_t request = driver_.Add(Embed(TokenRun(1, 64)));
  driver_.RunUntilIdle();
  ExpectEmbedded(request);
  EXPECT_EQ(driver_.scheduler().stats().step, 4);
}

TEST_F(SchedulerEmbeddingTest, NeedsNoRowOfLogits) {
  std::vector<uint64_t> generated, embedded;
  for (int i = 0; i < 3; ++i) {
    generated.push_back(driver_.Add(MakeRequest(TokenRun(100 * i, 3), 6)));
  }
  driver_.Step();
  embedded.push_back(driver_.Add(Embed(TokenRun(500, 5))));
  driver_.engine().set_before_step([](const StepPlan& plan) {
    EXPECT_EQ(plan.num_logits_rows, 3);
    return absl::OkStatus();
  });
  driver_.Step();
  ExpectEmbedded(embedded[0]);
  driver_.engine().set_before_step(nullptr);
  driver_.RunUntilIdle();
  for (const uint64_t request : generated) driver_.ExpectAsAlone(request);
}

TEST_F(SchedulerEmbeddingTest, TheLastTokenIsAlwaysComputed) {
  const std::vector<uint32_t> prompt = TokenRun(1, 16);
  const uint64_t first = driver_.Add(Embed(prompt));
  driver_.RunUntilIdle();
  const uint64_t again = driver_.Add(Embed(prompt));
  driver_.RunUntilIdle();
  ExpectEmbedded(first);
  ExpectEmbedded(again);
  EXPECT_EQ(CachedTokens(first), 0);
  EXPECT_EQ(CachedTokens(again), 12);  // whole pages before the last token
}

TEST_F(SchedulerEmbeddingTest, AMeanReadsNothingFromTheCacheButFillsIt) {
  const std::vector<uint32_t> prompt = TokenRun(1, 16);
  const uint64_t first = driver_.Add(Embed(prompt, v1::MEAN));
  driver_.RunUntilIdle();
  const uint64_t again = driver_.Add(Embed(prompt, v1::MEAN));
  driver_.RunUntilIdle();
  const uint64_t generated = driver_.Add(MakeRequest(prompt, 2));
  driver_.RunUntilIdle();
  ExpectEmbedded(first);
  ExpectEmbedded(again);
  EXPECT_EQ(CachedTokens(again), 0);
  EXPECT_EQ(CachedTokens(generated), 12);
  driver_.ExpectAsAlone(generated);
}

TEST(SchedulerEmbedding, APreemptedMeanBeginsAgain) {
  SchedulerOptions options = Options();
  options.num_pages = 21;
  options.max_sequences = options.max_step_tokens = 2;
  SchedulerDriver driver(options);
  // Grows by more than admission has left for it, before the other is done.
  const uint64_t generated = driver.Add(MakeRequest(TokenRun(1, 8), 50));
  for (int i = 0; i < 4; ++i) driver.Step();
  const uint64_t embedded = driver.Add(Embed(TokenRun(200, 40), v1::MEAN));
  std::vector<int> begins;
  driver.engine().set_before_step([&](const StepPlan& plan) {
    for (const SequenceSpan& span : plan.spans) {
      if (span.sequence->id().request == embedded) begins.push_back(span.begin);
    }
    return absl::OkStatus();
  });
  driver.RunUntilIdle();
  EXPECT_EQ(driver.scheduler().stats().preemptions, 1);
  EXPECT_EQ(std::count(begins.begin(), begins.end(), 0), 2);
  driver.ExpectAsAlone(generated);
  EXPECT_EQ(driver.outputs().of({embedded, 0}).embedding,
            FakeEmbedding(driver.request(embedded).prompt_token_ids(),
                          driver.request(embedded).embedding()));
}

TEST_F(SchedulerEmbeddingTest, CanBeAbortedMidChunk) {
  const uint64_t request = driver_.Add(Embed(TokenRun(1, 40)));
  driver_.Step();
  driver_.Abort(request);
  const auto& record = driver_.outputs().of({request, 0});
  EXPECT_EQ(record.reason, v1::ABORTED);
  EXPECT_THAT(record.embedding, IsEmpty());
  EXPECT_FALSE(driver_.scheduler().HasWork());
}

TEST_F(SchedulerEmbeddingTest, WhatNoLeaderSendsIsRefused) {
  const auto refusal = [this](auto change) {
    v1::RankMessage message;
    *message.mutable_add() = Embed(TokenRun(1, 4));
    message.mutable_add()->set_request(driver_.num_requests() + 1);
    change(message.mutable_add());
    const absl::Status status = driver_.scheduler().Apply(message);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(
      refusal([](v1::AddRequest* add) { add->mutable_sampling()->set_n(2); }),
      HasSubstr("n 2"));
  EXPECT_THAT(refusal([](v1::AddRequest* add) {
                add->mutable_embedding()->clear_pooling();
              }),
              HasSubstr("pooling 0"));
  EXPECT_THAT(
      refusal([](v1::AddRequest* add) { add->add_resume_token_ids(1); }),
      HasSubstr("num_resume_tokens 1"));
  EXPECT_THAT(refusal([](v1::AddRequest* add) {
                for (uint32_t id : TokenRun(1, 61)) {
                  add->add_prompt_token_ids(id);
                }
              }),
              HasSubstr("num_prompt_tokens 65"));
}

}  // namespace
}  // namespace lockstep
