#include "tests/testing/async_device/async_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/async_device/every_path.h"
#include "tests/testing/scheduler_driver.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/scheduler/scheduler_options.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr SchedulerOptions kOptions = {.num_pages = 4,
                                       .page_size = 16,
                                       .max_step_tokens = 32,
                                       .max_sequences = 2,
                                       .max_logits_rows = 2,
                                       .max_context = 32,
                                       .steps_in_flight = 2};

AsyncEngine::Options DeviceOf(const SchedulerOptions& options,
                              bool has_thread = false) {
  return {.num_pages = options.num_pages,
          .page_size = options.page_size,
          .vocabulary_size = SchedulerDriver::kVocabularySize,
          .has_thread = has_thread};
}

// What the request would get as its token number `index`.
uint32_t TokenOf(v1::AddRequest request, int index) {
  request.set_request(1);
  return ContinueAlone(request, 0, kOptions.max_context,
                       SchedulerDriver::kVocabularySize)
      .tokens[index];
}

// In every order in which the device may run what is launched. Two sequences
// compute the same page, so that one is left over while it is in flight; the
// second ends by a stop id and has a span too many; a third waits for its
// pages.
TEST(AsyncEngine, EveryOrderGivesTheSame) {
  const v1::AddRequest longest = MakeRequest(TokenRun(1, 16), 3);
  v1::AddRequest stopped = longest;
  stopped.mutable_sampling()->set_seed(1);
  stopped.mutable_sampling()->add_stop_token_ids(TokenOf(stopped, 1));
  const v1::AddRequest waiting = MakeRequest(TokenRun(50, 17), 1);
  EveryPath path;
  int paths = 0;
  do {
    AsyncEngine engine(DeviceOf(kOptions),
                       [&path](size_t n) { return path.Choose(n); });
    SchedulerDriver driver(kOptions, &engine);
    driver.Add(longest);
    driver.Add(stopped);
    driver.Add(waiting);
    driver.RunUntilIdle();
    driver.ExpectAllAsAlone();
    ASSERT_FALSE(HasFailure()) << "path " << paths;
    ++paths;
  } while (path.Next());
  std::cout << paths << " orders\n";
  EXPECT_GT(paths, 100);
}

TEST(AsyncEngine, AThreadGivesTheSame) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  SchedulerOptions options = kOptions;
  options.num_pages = 16;
  options.page_size = 8;
  options.max_context = 64;
  options.max_sequences = 4;
  options.max_logits_rows = 8;
  std::mt19937 random(seed);
  for (int run = 0; run < 50; ++run) {
    AsyncEngine engine(DeviceOf(options, /*has_thread=*/true),
                       [device = std::minstd_rand(random())](size_t n) mutable {
                         return device() % n;
                       });
    SchedulerDriver driver(options, &engine);
    for (int i = 0; i < 12; ++i) {
      v1::AddRequest request =
          MakeRequest(TokenRun(100 * (random() % 2), 1 + random() % 40), 1000);
      for (uint32_t id = 0; id < 100; ++id) {
        request.mutable_sampling()->add_stop_token_ids(id);
      }
      const uint64_t number = driver.Add(request);
      if (random() % 3 == 0) driver.Step();
      if (random() % 4 == 0) driver.Abort(1 + random() % number);
    }
    driver.RunUntilIdle();
    driver.ExpectAllAsAlone();
    ASSERT_FALSE(HasFailure()) << "run " << run;
  }
}

TEST(AsyncEngine, MayBeDestroyedWithStepsInFlight) {
  for (const bool has_thread : {false, true}) {
    AsyncEngine engine(DeviceOf(kOptions, has_thread),
                       [](size_t n) { return n - 1; });
    SchedulerDriver driver(kOptions, &engine);
    driver.Add(MakeRequest({1, 2, 3}, 3));
    driver.Step();
    EXPECT_NE(driver.scheduler().oldest(), nullptr);
  }
}

// Spans by hand, of one sequence.
class Launches : public ::testing::Test {
 protected:
  Launches() {
    const auto request = std::make_shared<v1::AddRequest>(MakeRequest({1}, 5));
    sequence_ = std::make_unique<Sequence>(SequenceId{.request = 1}, request);
    sequence_->mutable_pages() = {3};
  }

  StepPlan PlanOf(int begin, int token_from) {
    StepPlan plan;
    plan.spans.push_back({.sequence = sequence_.get(),
                          .begin = begin,
                          .count = 1,
                          .token_from = token_from,
                          .samples = true});
    return plan;
  }

  AsyncEngine engine_{DeviceOf(kOptions), [](size_t) { return 0; }};
  std::unique_ptr<Sequence> sequence_;
  StepResult result_;
};

TEST_F(Launches, TheIdStaysOnTheDevice) {
  ASSERT_TRUE(engine_.Launch(PlanOf(0, -1)).ok());
  ASSERT_TRUE(engine_.Launch(PlanOf(1, 0)).ok());
  ASSERT_TRUE(engine_.Retire(&result_).ok());
  const uint32_t first = result_.spans[0].token;
  ASSERT_TRUE(engine_.Retire(&result_).ok());
  v1::AddRequest alone = MakeRequest({1}, 2);
  EXPECT_EQ(first, TokenOf(alone, 0));
  EXPECT_EQ(result_.spans[0].token, TokenOf(alone, 1));
}

TEST_F(Launches, AnIdThatNobodySamplesIsRefused) {
  EXPECT_THAT(std::string(engine_.Launch(PlanOf(1, 0)).message()),
              HasSubstr("request 1, choice 0: the step before does not sample "
                        "its token as span 0."));
}

TEST_F(Launches, APageOfAnotherIsFound) {
  ASSERT_TRUE(engine_.Execute(PlanOf(0, -1), &result_).ok());
  sequence_->AppendToken(7);
  sequence_->mutable_pages() = {2};
  EXPECT_THAT(std::string(engine_.Execute(PlanOf(1, -1), &result_).message()),
              HasSubstr("request 1, choice 0: page 2 holds position -1 of some "
                        "sequence instead of position 0 of this one."));
}

}  // namespace
}  // namespace lockstep::testing
