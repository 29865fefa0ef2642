// A scheduler with two steps in flight: what it plans before it knows what the
// step before has sampled, and what it does with pages meanwhile.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/output_recorder.h"
#include "tests/testing/scheduler_driver.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SchedulerOverlapTest : public ::testing::Test {
 protected:
  // The ids that the oldest step in flight has sampled, a span each.
  void Commit(const std::vector<uint32_t>& tokens) {
    StepResult result;
    result.spans.resize(tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      result.spans[i].token = tokens[i];
    }
    scheduler_.Commit(result);
    EXPECT_TRUE(scheduler_.CheckConservation().ok());
  }

  const OutputRecorder::Record& OutputOf(uint64_t request) {
    return driver_.outputs().of({.request = request});
  }

  int FreePages() { return scheduler_.stats().free_pages; }

  SchedulerDriver driver_{{.num_pages = 40,
                           .page_size = 2,
                           .max_step_tokens = 8,
                           .max_sequences = 4,
                           .max_logits_rows = 8,
                           .max_context = 16,
                           .steps_in_flight = 2}};
  Scheduler& scheduler_ = driver_.scheduler();
};

TEST_F(SchedulerOverlapTest, PlansATokenThatItDoesNotKnow) {
  driver_.Add(MakeRequest({1, 2, 3}, 5));
  driver_.Add(MakeRequest({5}, 5));
  scheduler_.Plan();
  ASSERT_FALSE(scheduler_.MustCommit());
  const StepPlan& second = scheduler_.Plan();
  ASSERT_EQ(second.spans.size(), 2);
  EXPECT_EQ(second.spans[0].begin, 3);
  EXPECT_EQ(second.spans[0].count, 1);
  EXPECT_EQ(second.spans[0].token_from, 0);
  EXPECT_EQ(second.spans[1].begin, 1);
  EXPECT_EQ(second.spans[1].token_from, 1);
  ASSERT_TRUE(scheduler_.MustCommit());
  EXPECT_EQ(scheduler_.oldest()->step, 1);
  EXPECT_THAT(OutputOf(1).tokens, IsEmpty());
  Commit({10, 20});
  EXPECT_THAT(OutputOf(1).tokens, ElementsAre(10));
  EXPECT_THAT(OutputOf(2).tokens, ElementsAre(20));
  EXPECT_FALSE(scheduler_.MustCommit());
}

TEST_F(SchedulerOverlapTest, PlansTheNextChunkOfAPrompt) {
  driver_.Add(MakeRequest(TokenRun(1, 10), 5));
  EXPECT_EQ(scheduler_.Plan().spans[0].count, 8);
  const StepPlan& second = scheduler_.Plan();
  ASSERT_EQ(second.spans.size(), 1);
  EXPECT_EQ(second.spans[0].begin, 8);
  EXPECT_EQ(second.spans[0].count, 2);
  EXPECT_EQ(second.spans[0].token_from, -1);
}

TEST_F(SchedulerOverlapTest, KnowsWhoEndsByLength) {
  driver_.Add(MakeRequest({1, 2, 3}, 1));
  scheduler_.Plan();
  EXPECT_TRUE(scheduler_.Plan().empty());
  ASSERT_TRUE(scheduler_.MustCommit());
  Commit({10});
  EXPECT_EQ(OutputOf(1).reason, v1::LENGTH);
  ASSERT_TRUE(scheduler_.MustCommit());
  Commit({});
  EXPECT_EQ(scheduler_.oldest(), nullptr);
}

TEST_F(SchedulerOverlapTest, WhatFollowsAStopIdIsThrownAway) {
  v1::AddRequest request = MakeRequest({1, 2, 3}, 5);
  request.mutable_sampling()->add_stop_token_ids(7);
  driver_.Add(request);
  scheduler_.Plan();
  EXPECT_EQ(scheduler_.Plan().spans.size(), 1);
  Commit({7});
  EXPECT_EQ(OutputOf(1).reason, v1::STOP);
  EXPECT_FALSE(scheduler_.HasWork());
  // The group is idle, but for a step in flight.
  ASSERT_TRUE(scheduler_.MustCommit());
  EXPECT_EQ(FreePages(), 38);
  Commit({11});
  EXPECT_THAT(OutputOf(1).tokens, IsEmpty());
  EXPECT_EQ(FreePages(), 39);
  EXPECT_EQ(scheduler_.stats().cached_pages, 1);
}

TEST_F(SchedulerOverlapTest, KeepsThePagesOfAnAbortedOneUntilItsStepEnds) {
  driver_.Add(MakeRequest(TokenRun(1, 6), 5));
  driver_.Add(MakeRequest({50}, 5));
  scheduler_.Plan();
  driver_.Abort(1);
  EXPECT_EQ(OutputOf(1).reason, v1::ABORTED);
  EXPECT_EQ(FreePages(), 36);
  EXPECT_TRUE(scheduler_.CheckConservation().ok());
  EXPECT_EQ(scheduler_.Plan().spans.size(), 1);
  Commit({10, 20});
  EXPECT_THAT(OutputOf(1).tokens, IsEmpty());
  EXPECT_EQ(FreePages(), 39);
}

TEST_F(SchedulerOverlapTest, OffersNothingThatIsStillComputed) {
  driver_.Add(MakeRequest(TokenRun(1, 6), 5));
  scheduler_.Plan();
  driver_.Abort(1);
  const uint64_t same = driver_.Add(MakeRequest(TokenRun(1, 6), 5));
  scheduler_.Plan();
  EXPECT_EQ(OutputOf(same).cached_tokens, 0);
}

TEST_F(SchedulerOverlapTest, CommitsWhatAGrammarNeeds) {
  v1::AddRequest request = MakeRequest(TokenRun(1, 10), 5);
  request.set_grammar(1);
  driver_.Add(request);
  scheduler_.Plan();
  EXPECT_FALSE(scheduler_.MustCommit());  // a chunk of the prompt
  scheduler_.Plan();
  ASSERT_TRUE(scheduler_.MustCommit());
  Commit({0});
  ASSERT_TRUE(scheduler_.MustCommit());
  Commit({10});
  EXPECT_EQ(scheduler_.oldest(), nullptr);
  EXPECT_EQ(scheduler_.Plan().spans[0].token_from, -1);
}

// A request that the device can answer alone, beside one that it can not.
TEST(SchedulerOverlapHost, CommitsWhatTheDeviceLeavesToTheHost) {
  SchedulerDriver driver({.num_pages = 40,
                          .page_size = 2,
                          .max_step_tokens = 8,
                          .max_sequences = 4,
                          .max_logits_rows = 8,
                          .max_context = 16,
                          .steps_in_flight = 2,
                          .host_samples = true});
  Scheduler& scheduler = driver.scheduler();
  driver.Add(MakeRequest({1, 2, 3}, 9));  // drawn
  scheduler.Plan();
  EXPECT_FALSE(scheduler.MustCommit());
  v1::AddRequest penalized = MakeRequest({5}, 2);
  penalized.mutable_sampling()->set_repetition_penalty(2);
  driver.Add(penalized);
  scheduler.Plan();
  StepResult result;
  result.spans.resize(2);
  for (int committed = 0; committed < 2; ++committed) {
    ASSERT_TRUE(scheduler.MustCommit());
    scheduler.Commit(result);
  }
  EXPECT_EQ(scheduler.oldest(), nullptr);
  EXPECT_EQ(scheduler.Plan().spans[0].token_from, -1);
  ASSERT_TRUE(scheduler.MustCommit());
  scheduler.Commit(result);  // ends the penalized one
  scheduler.Plan();
  EXPECT_FALSE(scheduler.MustCommit());
  EXPECT_EQ(scheduler.Plan().spans[0].token_from, 0);
}

// One is aborted just when the others need a page each: its own are in flight,
// and they wait for these rather than preempt each other.
TEST(SchedulerOverlapPages, WaitForThoseInFlightRatherThanPreempt) {
  SchedulerDriver driver({.num_pages = 6,
                          .page_size = 16,
                          .max_step_tokens = 48,
                          .max_sequences = 3,
                          .max_logits_rows = 3,
                          .max_context = 64,
                          .steps_in_flight = 2});
  Scheduler& scheduler = driver.scheduler();
  StepResult result;
  result.spans.resize(3);
  for (int request = 0; request < 3; ++request) {
    driver.Add(MakeRequest(TokenRun(100 * request, 15), 100));
  }
  for (int begin = 0; begin != 31; begin = begin == 0 ? 15 : begin + 1) {
    const StepPlan& plan = scheduler.Plan();
    ASSERT_EQ(plan.spans.size(), 3);
    ASSERT_EQ(plan.spans[0].begin, begin);
    if (scheduler.MustCommit()) scheduler.Commit(result);
  }
  scheduler.Plan();  // position 31, the last of their second pages
  scheduler.Commit(result);
  EXPECT_EQ(scheduler.stats().free_pages, 0);
  driver.Abort(3);
  EXPECT_TRUE(scheduler.Plan().empty());
  while (scheduler.MustCommit()) scheduler.Commit(result);
  EXPECT_EQ(scheduler.Plan().spans.size(), 2);
  EXPECT_EQ(scheduler.stats().preemptions, 0);
}

TEST_F(SchedulerOverlapTest, AnEmbeddingIsComputedOnce) {
  v1::AddRequest request = MakeRequest({1, 2, 3}, 0);
  request.mutable_embedding()->set_pooling(v1::LAST_TOKEN);
  driver_.Add(request);
  EXPECT_TRUE(scheduler_.Plan().spans[0].embeds);
  EXPECT_TRUE(scheduler_.Plan().empty());
  Commit({0});
  EXPECT_EQ(OutputOf(1).reason, v1::STOP);
}

}  // namespace
}  // namespace lockstep
