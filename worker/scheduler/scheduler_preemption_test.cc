#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/scheduler_driver.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {
namespace {

// Pages for one sequence of full length and a little.
SchedulerOptions FewPages(int page_size) {
  return {.num_pages = 128 / page_size,
          .page_size = page_size,
          .max_step_tokens = 16,
          .max_sequences = 4,
          .max_logits_rows = 4,
          .max_context = 112};
}

void RunUntilPreemption(SchedulerDriver* driver) {
  while (driver->scheduler().HasWork() &&
         driver->scheduler().stats().preemptions == 0) {
    driver->Step();
  }
  ASSERT_EQ(driver->scheduler().stats().preemptions, 1);
}

TEST(SchedulerPreemptionTest, TakesTheNewestOfThoseThatGoLast) {
  SchedulerDriver driver(FewPages(4));
  std::vector<v1::AddRequest> requests;
  for (int i = 0; i < 3; ++i) {
    requests.push_back(MakeRequest(TokenRun(100 * i, 4), 60));
  }
  requests[2].set_priority(-1);
  for (const auto& request : requests) driver.Add(request);
  RunUntilPreemption(&driver);
  // Request 3 is newer, but goes first.
  EXPECT_EQ(driver.scheduler().stats().waiting_sequences, 1);
  const size_t before = driver.outputs().of({2, 0}).tokens.size();
  driver.Step();
  EXPECT_EQ(driver.outputs().of({2, 0}).tokens.size(), before);
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
  EXPECT_THAT(driver.outputs().finishes(),
              ::testing::ElementsAre(SequenceId{3, 0}, SequenceId{1, 0},
                                     SequenceId{2, 0}));
}

TEST(SchedulerPreemptionTest, TheQueueDoesNotOvertakeThePreempted) {
  SchedulerDriver driver(FewPages(4));
  for (int i = 0; i < 3; ++i) {
    driver.Add(MakeRequest(TokenRun(100 * i, 4), 60));
  }
  RunUntilPreemption(&driver);
  driver.Add(MakeRequest(TokenRun(900, 4), 2));
  const size_t before = driver.outputs().of({3, 0}).tokens.size();
  while (driver.outputs().of({3, 0}).tokens.size() == before) {
    EXPECT_TRUE(driver.outputs().of({4, 0}).tokens.empty());
    driver.Step();
  }
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
}

// With pages for one sequence of full length alone, many of full length all
// end: the first by precedence is never preempted, so it ends, and so does the
// next. The number of steps shows that they do not undo each other's work.
TEST(SchedulerPreemptionTest, EveryoneEndsWithPagesForOne) {
  for (const int page_size : {1, 2, 4, 16, 32}) {
    SCOPED_TRACE(page_size);
    SchedulerDriver driver(FewPages(page_size));
    constexpr int kRequests = 12;
    for (int i = 0; i < kRequests; ++i) {
      driver.Add(MakeRequest(TokenRun(40 * i, 4), 108));
    }
    driver.RunUntilIdle();
    driver.ExpectAllAsAlone();
    EXPECT_EQ(driver.outputs().finishes().size(), kRequests);
    EXPECT_GT(driver.scheduler().stats().preemptions, 0);
    // One after the other takes 108 steps each.
    EXPECT_LE(driver.scheduler().stats().step, kRequests * 108);
  }
}

// Two streams that grow, and a long prompt that needs many steps: it goes while
// it has not sampled anything yet, and finds its chunks in the cache again.
TEST(SchedulerPreemptionTest, AMidPromptSequenceKeepsItsChunks) {
  SchedulerOptions options = FewPages(4);
  options.max_step_tokens = 4;
  SchedulerDriver driver(options);
  driver.Add(MakeRequest(TokenRun(1, 4), 100));
  driver.Add(MakeRequest(TokenRun(100, 4), 100));
  for (int i = 0; i < 3; ++i) driver.Step();
  driver.Add(MakeRequest(TokenRun(200, 60), 2));
  RunUntilPreemption(&driver);
  EXPECT_TRUE(driver.outputs().of({3, 0}).cached_tokens.has_value());
  EXPECT_TRUE(driver.outputs().of({3, 0}).tokens.empty());
  EXPECT_GE(driver.scheduler().stats().cached_pages, 6);
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
}

TEST(SchedulerPreemptionTest, PromptLogprobsComeOnceEach) {
  SchedulerOptions options = FewPages(4);
  options.max_step_tokens = 8;
  options.max_logits_rows = 4;
  SchedulerDriver driver(options);
  std::vector<uint64_t> numbers;
  for (int i = 0; i < 4; ++i) {
    v1::AddRequest request = MakeRequest(TokenRun(100 * i, 10), 80);
    request.mutable_sampling()->set_prompt_logprobs_plus_one(1);
    numbers.push_back(driver.Add(request));
  }
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
  EXPECT_GT(driver.scheduler().stats().preemptions, 0);
  for (const uint64_t number : numbers) {
    const auto& record = driver.outputs().of({number, 0});
    ASSERT_EQ(record.prompt_logprobs.size(), 9);
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(record.prompt_logprobs[i].token().token_id(),
                driver.request(number).prompt_token_ids(i + 1));
    }
  }
}

// Several prompts that just fit by tokens but not by whole pages are admitted
// in one step only as far as their pages go.
TEST(SchedulerPreemptionTest, CountsWholePagesAtAdmission) {
  SchedulerDriver driver({.num_pages = 4,
                          .page_size = 16,
                          .max_step_tokens = 64,
                          .max_sequences = 8,
                          .max_logits_rows = 8,
                          .max_context = 64});
  for (int i = 0; i < 8; ++i) {
    driver.Add(MakeRequest(TokenRun(50 * i, 17), 20));
  }
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
}

TEST(SchedulerPreemptionTest, ChoicesArePreemptedOneByOne) {
  SchedulerDriver driver(FewPages(2));
  v1::AddRequest request = MakeRequest(TokenRun(1, 9), 90);
  request.mutable_sampling()->set_n(4);
  driver.Add(request);
  driver.Add(request);
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
  EXPECT_GT(driver.scheduler().stats().preemptions, 0);
}

}  // namespace
}  // namespace lockstep
