#include "worker/runtime/step_meter.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lockstep {
namespace {

using std::chrono::milliseconds;

TEST(StepMeterTest, AStepLastsFromItsFirstStageToItsLast) {
  StepMeter meter;
  const StepMeter::Clock::time_point start;
  meter.Enter(v1::PLANS, start + milliseconds(1000));  // idle until then
  meter.Enter(v1::WAITS_FOR_DIGEST, start + milliseconds(1010));
  meter.Enter(v1::EXECUTES, start + milliseconds(1011));
  meter.Enter(v1::FINISHED, start + milliseconds(1061));
  meter.Enter(v1::WAITS_FOR_FRAME, start + milliseconds(1062));
  meter.Enter(v1::PLANS, start + milliseconds(1065));
  meter.Enter(v1::FINISHED, start + milliseconds(1075));

  const Histogram::Snapshot steps = meter.steps().Read();
  EXPECT_NEAR(steps.sum, 0.061 + 0.013, 1e-9);
  EXPECT_NEAR(meter.SecondsIn(v1::WAITS_FOR_FRAME), 0.003, 1e-9);
  EXPECT_NEAR(meter.SecondsIn(v1::PLANS), 0.020, 1e-9);
  EXPECT_NEAR(meter.SecondsIn(v1::WAITS_FOR_DIGEST), 0.001, 1e-9);
  EXPECT_NEAR(meter.SecondsIn(v1::EXECUTES), 0.050, 1e-9);
}

TEST(StepMeterTest, CountsTokensAndPlansAgreedOn) {
  StepMeter meter;
  meter.OnPlan(1);
  meter.OnPlan(8);
  meter.OnPlan(9);
  meter.OnAgreed();
  EXPECT_EQ(meter.tokens().Read().sum, 18);
  EXPECT_EQ(meter.tokens().Read().counts[1], 1);  // of 2 to 8
  EXPECT_EQ(meter.agreed(), 1);
}

}  // namespace
}  // namespace lockstep
