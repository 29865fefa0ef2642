#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/scheduler_driver.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {
namespace {

SchedulerOptions Options() {
  return {.num_pages = 64,
          .page_size = 4,
          .max_step_tokens = 32,
          .max_sequences = 8,
          .max_logits_rows = 8,
          .max_context = 64};
}

TEST(SchedulerSharingTest, ReusesFullPagesOfAnEarlierPrompt) {
  SchedulerDriver driver(Options());
  driver.Add(MakeRequest(TokenRun(1, 10), 1));
  driver.RunUntilIdle();
  EXPECT_EQ(driver.scheduler().stats().cached_pages, 2);
  std::vector<uint32_t> longer = TokenRun(1, 10);
  longer.push_back(77);
  driver.Add(MakeRequest(longer, 5));
  driver.RunUntilIdle();
  EXPECT_EQ(driver.outputs().of({1, 0}).cached_tokens, 0);
  EXPECT_EQ(driver.outputs().of({2, 0}).cached_tokens, 8);
  driver.ExpectAllAsAlone();
}

TEST(SchedulerSharingTest, ComputesAtLeastTheLastToken) {
  SchedulerDriver driver(Options());
  driver.Add(MakeRequest(TokenRun(1, 8), 1));
  driver.RunUntilIdle();
  driver.Add(MakeRequest(TokenRun(1, 8), 3));
  driver.RunUntilIdle();
  EXPECT_EQ(driver.outputs().of({2, 0}).cached_tokens, 4);
  driver.ExpectAllAsAlone();
}

TEST(SchedulerSharingTest, GeneratedTokensAreCachedToo) {
  SchedulerDriver driver(Options());
  driver.Add(MakeRequest(TokenRun(1, 6), 12));
  driver.RunUntilIdle();
  // The next turn of a chat: all that was said, and a question.
  std::vector<uint32_t> turn = TokenRun(1, 6);
  const auto& said = driver.outputs().of({1, 0}).tokens;
  turn.insert(turn.end(), said.begin(), said.end());
  turn.push_back(5);
  driver.Add(MakeRequest(turn, 4));
  driver.RunUntilIdle();
  // The last of the 18 tokens was sampled but not computed.
  EXPECT_EQ(driver.outputs().of({2, 0}).cached_tokens, 16);
  driver.ExpectAllAsAlone();
}

TEST(SchedulerSharingTest, ARunningPromptIsSharedOnceComputed) {
  SchedulerDriver driver(Options());
  driver.Add(MakeRequest(TokenRun(1, 9), 20));
  driver.Step();
  driver.Add(MakeRequest(TokenRun(1, 9), 20));
  driver.Step();
  EXPECT_EQ(driver.outputs().of({2, 0}).cached_tokens, 8);
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
}

// Two equal prompts are computed in one step. The second's pages are
// duplicates: they are free after it, so its page table must not name them any
// longer, whoever uses them next.
TEST(SchedulerSharingTest, EqualPromptsOfOneStepEndUpOnOneSetOfPages) {
  SchedulerDriver driver(Options());
  v1::AddRequest twin = MakeRequest(TokenRun(1, 13), 30);
  driver.Add(twin);
  twin.mutable_sampling()->set_seed(5);
  driver.Add(twin);
  driver.Step();
  EXPECT_EQ(driver.scheduler().stats().free_pages, 64 - 3 - 1 - 1);
  // Others overwrite what was freed.
  driver.Add(MakeRequest(TokenRun(500, 20), 10));
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
}

TEST(SchedulerSharingTest, BypassNeitherReadsNorWrites) {
  SchedulerDriver driver(Options());
  v1::AddRequest bypass = MakeRequest(TokenRun(1, 10), 6);
  bypass.set_bypass_prefix_cache(true);
  driver.Add(bypass);
  driver.RunUntilIdle();
  EXPECT_EQ(driver.scheduler().stats().cached_pages, 0);
  EXPECT_EQ(driver.scheduler().stats().free_pages, 64);
  driver.Add(MakeRequest(TokenRun(1, 10), 6));
  driver.RunUntilIdle();
  EXPECT_EQ(driver.outputs().of({2, 0}).cached_tokens, 0);
  driver.Add(bypass);
  driver.RunUntilIdle();
  EXPECT_EQ(driver.outputs().of({3, 0}).cached_tokens, 0);
  driver.ExpectAllAsAlone();
}

TEST(SchedulerSharingTest, ChoicesComputeTheirPromptOnce) {
  SchedulerDriver driver(Options());
  v1::AddRequest request = MakeRequest(TokenRun(1, 41), 6);
  request.mutable_sampling()->set_n(3);
  driver.Add(request);
  driver.Step();
  EXPECT_EQ(driver.scheduler().stats().running_sequences, 1);
  EXPECT_EQ(driver.scheduler().stats().waiting_sequences, 2);
  driver.Step();
  driver.Step();
  EXPECT_EQ(driver.scheduler().stats().running_sequences, 3);
  driver.RunUntilIdle();
  EXPECT_EQ(driver.outputs().of({1, 0}).cached_tokens, 0);
  EXPECT_EQ(driver.outputs().of({1, 1}).cached_tokens, 40);
  EXPECT_EQ(driver.outputs().of({1, 2}).cached_tokens, 40);
  EXPECT_NE(driver.outputs().of({1, 1}).tokens,
            driver.outputs().of({1, 2}).tokens);
  driver.ExpectAllAsAlone();
}

TEST(SchedulerSharingTest, ChoicesThatBypassTheCacheStartTogether) {
  SchedulerDriver driver(Options());
  v1::AddRequest request = MakeRequest(TokenRun(1, 9), 6);
  request.mutable_sampling()->set_n(3);
  request.set_bypass_prefix_cache(true);
  driver.Add(request);
  EXPECT_EQ(driver.Step().spans.size(), 3);
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
  EXPECT_EQ(driver.scheduler().stats().free_pages, 64);
}

TEST(SchedulerSharingTest, ChoicesOfOneTokenAllEnd) {
  SchedulerDriver driver(Options());
  v1::AddRequest request = MakeRequest({1}, 1);
  request.mutable_sampling()->set_n(16);
  driver.Add(request);
  driver.RunUntilIdle();
  EXPECT_EQ(driver.outputs().finishes().size(), 16);
  driver.ExpectAllAsAlone();
}

TEST(SchedulerSharingTest, EvictsUnusedPrefixesForNewPrompts) {
  SchedulerOptions options = Options();
  options.num_pages = 16;
  SchedulerDriver driver(options);
  for (int i = 0; i < 20; ++i) {
    driver.Add(MakeRequest(TokenRun(100 * i, 20), 5));
    driver.RunUntilIdle();
  }
  driver.ExpectAllAsAlone();
  EXPECT_EQ(driver.scheduler().stats().preemptions, 0);
  EXPECT_EQ(driver.scheduler().stats().free_pages +
                driver.scheduler().stats().cached_pages,
            16);
}

}  // namespace
}  // namespace lockstep
