#include "worker/scheduler/steps_in_flight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "proto/group.pb.h"
#include "worker/scheduler/scheduled_sequence.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(StepsInFlight, LeaveInTheOrderInWhichTheyCame) {
  StepsInFlight steps(2);
  EXPECT_TRUE(steps.empty());
  for (uint64_t number = 1; number < 6; ++number) {
    PlannedStep& step = steps.Add();
    step.plan.step = number;
    EXPECT_EQ(steps.newest().plan.step, number);
    EXPECT_EQ(steps.full(), number > 1);
    if (number == 1) continue;
    EXPECT_EQ(steps.oldest().plan.step, number - 1);
    steps.RemoveOldest();
    EXPECT_EQ(steps.size(), 1);
  }
}

TEST(StepsInFlight, BeginWithoutSpans) {
  StepsInFlight steps(1);
  PlannedStep& step = steps.Add();
  step.plan.spans.emplace_back();
  step.plan.num_tokens = 1;
  step.plan.num_logits_rows = 1;
  step.sequences.push_back(nullptr);
  steps.RemoveOldest();
  const PlannedStep& next = steps.Add();
  EXPECT_TRUE(next.plan.empty());
  EXPECT_EQ(next.plan.num_tokens, 0);
  EXPECT_EQ(next.plan.num_logits_rows, 0);
  EXPECT_THAT(next.sequences, IsEmpty());
}

TEST(StepsInFlight, ForgetASequenceInEveryStep) {
  const auto request = std::make_shared<v1::AddRequest>();
  ScheduledSequence a({.request = 1}, request, 1);
  ScheduledSequence b({.request = 2}, request, 1);
  StepsInFlight steps(2);
  steps.Add().sequences = {&a, &b};
  steps.Add().sequences = {&b, &a};
  steps.Forget(&a);
  EXPECT_THAT(steps.oldest().sequences, ElementsAre(nullptr, &b));
  EXPECT_THAT(steps.newest().sequences, ElementsAre(&b, nullptr));
}

}  // namespace
}  // namespace lockstep
