#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/scheduler_driver.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {
namespace {

// Aborts in every state a sequence can be in. After each the neighbours go on
// as if nothing had happened, and no page is held.
class SchedulerAbortTest : public ::testing::Test {
 protected:
  static v1::AddRequest Long(uint32_t first, uint32_t n = 1) {
    v1::AddRequest request = MakeRequest(TokenRun(first, 20), 20);
    request.mutable_sampling()->set_n(n);
    return request;
  }

  bool IsAborted(uint64_t request, uint32_t choice = 0) {
    return driver_.outputs().of({request, choice}).reason == v1::ABORTED;
  }

  void ExpectIdleAndAsAlone() {
    driver_.RunUntilIdle();
    driver_.ExpectAllAsAlone();
    const SchedulerStats stats = driver_.scheduler().stats();
    EXPECT_EQ(stats.free_pages + stats.cached_pages, stats.total_pages);
    EXPECT_EQ(stats.waiting_sequences, 0);
    EXPECT_EQ(stats.waiting_tokens, 0);
  }

  SchedulerDriver driver_{{.num_pages = 16,
                           .page_size = 4,
                           .max_step_tokens = 8,
                           .max_sequences = 4,
                           .max_logits_rows = 4,
                           .max_context = 40}};
};

TEST_F(SchedulerAbortTest, Waiting) {
  driver_.Add(Long(1));
  driver_.Add(Long(100));
  driver_.Step();
  driver_.Abort(2);
  EXPECT_TRUE(IsAborted(2));
  EXPECT_FALSE(driver_.outputs().of({2, 0}).cached_tokens.has_value());
  ExpectIdleAndAsAlone();
}

TEST_F(SchedulerAbortTest, BeforeAnyStep) {
  driver_.Add(Long(1));
  driver_.Abort(1);
  EXPECT_FALSE(driver_.scheduler().HasWork());
  ExpectIdleAndAsAlone();
}

TEST_F(SchedulerAbortTest, MidChunk) {
  driver_.Add(Long(1));
  driver_.Add(Long(100));
  driver_.Step();
  EXPECT_LT(driver_.scheduler().stats().free_pages, 16);
  driver_.Abort(1);
  EXPECT_EQ(driver_.scheduler().stats().free_pages +
                driver_.scheduler().stats().cached_pages,
            16);
  ExpectIdleAndAsAlone();
}

TEST_F(SchedulerAbortTest, Decoding) {
  driver_.Add(Long(1));
  driver_.Add(MakeRequest(TokenRun(200, 3), 30));
  for (int i = 0; i < 8; ++i) driver_.Step();
  ASSERT_FALSE(driver_.outputs().of({1, 0}).tokens.empty());
  driver_.Abort(1);
  EXPECT_TRUE(IsAborted(1));
  ExpectIdleAndAsAlone();
}

TEST_F(SchedulerAbortTest, Preempted) {
  driver_.Add(MakeRequest(TokenRun(1, 4), 36));
  driver_.Add(MakeRequest(TokenRun(100, 4), 36));
  while (driver_.scheduler().HasWork() &&
         driver_.scheduler().stats().preemptions == 0) {
    driver_.Step();
  }
  ASSERT_EQ(driver_.scheduler().stats().waiting_sequences, 1);
  driver_.Abort(2);
  EXPECT_TRUE(IsAborted(2));
  ExpectIdleAndAsAlone();
}

TEST_F(SchedulerAbortTest, Finished) {
  driver_.Add(Long(1));
  driver_.RunUntilIdle();
  driver_.Abort(1);
  EXPECT_EQ(driver_.outputs().of({1, 0}).reason, v1::LENGTH);
  ExpectIdleAndAsAlone();
}

TEST_F(SchedulerAbortTest, UnknownRequestsAndChoices) {
  driver_.Abort(5);
  driver_.Add(Long(1));
  driver_.Abort(1, {3, 9});
  driver_.Abort(2, {0});
  EXPECT_FALSE(IsAborted(1));
  ExpectIdleAndAsAlone();
}

TEST_F(SchedulerAbortTest, TheChoiceThatComputesThePrompt) {
  driver_.Add(Long(1, /*n=*/3));
  driver_.Step();
  driver_.Abort(1, {0});
  EXPECT_TRUE(IsAborted(1, 0));
  EXPECT_FALSE(IsAborted(1, 1));
  driver_.Step();
  // What the first had computed is there for the second.
  EXPECT_EQ(driver_.outputs().of({1, 1}).cached_tokens, 8);
  ExpectIdleAndAsAlone();
}

TEST_F(SchedulerAbortTest, AChoiceThatWaitsForItsSibling) {
  driver_.Add(Long(1, /*n=*/3));
  driver_.Step();
  driver_.Abort(1, {1});
  EXPECT_TRUE(IsAborted(1, 1));
  ExpectIdleAndAsAlone();
  EXPECT_EQ(driver_.outputs().of({1, 2}).reason, v1::LENGTH);
}

TEST_F(SchedulerAbortTest, AllChoicesAtOnceInMixedStates) {
  driver_.Add(Long(1, /*n=*/4));
  driver_.Add(Long(100));
  for (int i = 0; i < 5; ++i) driver_.Step();
  driver_.Abort(1);
  for (uint32_t choice = 0; choice < 4; ++choice) {
    EXPECT_TRUE(IsAborted(1, choice));
  }
  ExpectIdleAndAsAlone();
}

TEST_F(SchedulerAbortTest, TwiceInOneMessageAndAgain) {
  driver_.Add(Long(1, /*n=*/2));
  driver_.Step();
  driver_.Abort(1, {0, 0});
  driver_.Abort(1);
  driver_.Abort(1);
  ExpectIdleAndAsAlone();
  EXPECT_EQ(driver_.outputs().finishes().size(), 2);
}

// The pages of an aborted sequence go to the very next one.
TEST_F(SchedulerAbortTest, PagesAreReusedAtOnce) {
  v1::AddRequest bypass = Long(1);
  bypass.set_bypass_prefix_cache(true);
  driver_.Add(bypass);
  driver_.Add(MakeRequest(TokenRun(300, 4), 20));
  for (int i = 0; i < 6; ++i) driver_.Step();
  driver_.Abort(1);
  driver_.Add(Long(500));
  ExpectIdleAndAsAlone();
}

}  // namespace
}  // namespace lockstep
