#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/digest.h"
#include "tests/testing/output_recorder.h"
#include "tests/testing/scheduler_driver.h"
#include "worker/core/step_result.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {
namespace {

SchedulerOptions Options() {
  return {.num_pages = 32,
          .page_size = 4,
          .max_step_tokens = 8,
          .max_sequences = 4,
          .max_logits_rows = 4,
          .max_context = 64};
}

std::vector<std::string> DigestsUntilIdle(SchedulerDriver* driver) {
  std::vector<std::string> digests;
  while (driver->scheduler().HasWork()) {
    digests.push_back(ToHex(driver->Step().digest));
  }
  digests.push_back(ToHex(driver->Step().digest));
  return digests;
}

std::vector<std::string> DigestsOf(const v1::AddRequest& request) {
  SchedulerDriver driver(Options());
  driver.Add(request);
  return DigestsUntilIdle(&driver);
}

TEST(SchedulerDigestTest, IsEqualForEqualHistories) {
  EXPECT_EQ(DigestsOf(MakeRequest(TokenRun(1, 20), 9)),
            DigestsOf(MakeRequest(TokenRun(1, 20), 9)));
}

// A rank that samples another id differs from the next step on, for ever.
TEST(SchedulerDigestTest, CoversSampledIds) {
  OutputRecorder outputs_a;
  OutputRecorder outputs_b;
  Scheduler a(Options(), &outputs_a);
  Scheduler b(Options(), &outputs_b);
  v1::RankMessage message;
  *message.mutable_add() = MakeRequest(TokenRun(1, 3), 5);
  message.mutable_add()->set_request(1);
  ASSERT_TRUE(a.Apply(message).ok());
  ASSERT_TRUE(b.Apply(message).ok());
  StepResult result;
  result.spans.resize(1);
  for (int step = 1; step <= 5; ++step) {
    const bool equal = a.Plan().digest == b.Plan().digest;
    EXPECT_EQ(equal, step <= 2) << step;
    result.spans[0].token = 7;
    a.Commit(result);
    if (step == 2) result.spans[0].token = 8;
    b.Commit(result);
  }
}

// A rank to which the model gave no number differs from the next step on.
TEST(SchedulerDigestTest, CoversWhatIsNotFinite) {
  SchedulerDriver driver(Options());
  OutputRecorder outputs;
  Scheduler other(Options(), &outputs);
  v1::RankMessage message;
  for (int number = 1; number <= 2; ++number) {
    *message.mutable_add() = MakeRequest(TokenRun(1, 3), 1);
    message.mutable_add()->set_request(number);
    ASSERT_TRUE(other.Apply(message).ok());
    driver.Add(message.add());
  }
  EXPECT_EQ(other.Plan().digest, driver.Step().digest);
  StepResult result;
  result.spans.resize(2);
  for (uint64_t number = 1; number <= 2; ++number) {
    result.spans[number - 1].token =
        driver.outputs().of({number, 0}).tokens.at(0);
  }
  result.spans[1].is_finite = false;
  other.Commit(result);
  EXPECT_EQ(outputs.of({2, 0}).reason, v1::NOT_FINITE);
  EXPECT_NE(other.Plan().digest, driver.Step().digest);
}

TEST(SchedulerDigestTest, CoversPages) {
  // The same spans on other pages: one has a prefix of another prompt cached.
  SchedulerDriver plain(Options());
  SchedulerDriver used(Options());
  v1::AddRequest other = MakeRequest(TokenRun(900, 9), 1);
  plain.Add(other);
  other.set_bypass_prefix_cache(true);
  used.Add(other);
  DigestsUntilIdle(&plain);
  DigestsUntilIdle(&used);
  plain.Add(MakeRequest(TokenRun(1, 3), 2));
  used.Add(MakeRequest(TokenRun(1, 3), 2));
  EXPECT_NE(plain.Step().digest, used.Step().digest);
}

}  // namespace
}  // namespace lockstep
