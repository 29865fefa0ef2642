#include "worker/scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/scheduler_driver.h"

namespace lockstep {
namespace {

TEST(SchedulerTest, RunsOneRequestToItsLength) {
  SchedulerDriver driver({.num_pages = 8, .page_size = 4, .max_context = 32});
  const uint64_t request = driver.Add(MakeRequest(TokenRun(1, 10), 5));
  driver.RunUntilIdle();
  driver.ExpectAsAlone(request);
  EXPECT_EQ(driver.scheduler().stats().step, 5);
  EXPECT_EQ(driver.outputs().of({request, 0}).tokens.size(), 5);
}

TEST(SchedulerTest, TwoPagesEachPreemptAndStillEnd) {
  SchedulerDriver driver({.num_pages = 4,
                          .page_size = 4,
                          .max_step_tokens = 8,
                          .max_sequences = 4,
                          .max_logits_rows = 4,
                          .max_context = 16});
  for (int i = 0; i < 4; ++i) driver.Add(MakeRequest(TokenRun(10 * i, 3), 12));
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
}

}  // namespace
}  // namespace lockstep
