#include "worker/group/step_progress.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

v1::Heartbeat At(uint64_t step, v1::StepStage stage, int64_t collectives = 0) {
  StepProgress progress;
  progress.Enter(step, stage);
  progress.CountCollectives([=] { return collectives; });
  return progress.Read();
}

TEST(StepProgress, TellsWhatItWasToldLast) {
  StepProgress progress;
  EXPECT_EQ(FinishedStep(progress.Read()), 0);
  EXPECT_EQ(progress.Read().collectives(), 0);
  progress.Enter(7, v1::EXECUTES);
  progress.SetOverdue(7);
  EXPECT_FALSE(progress.Read().loaded());
  progress.SetLoaded();
  progress.CountCollectives([] { return 57; });
  const v1::Heartbeat now = progress.Read();
  EXPECT_EQ(now.step(), 7);
  EXPECT_EQ(now.stage(), v1::EXECUTES);
  EXPECT_EQ(now.overdue_step(), 7);
  EXPECT_EQ(now.collectives(), 57);
  EXPECT_TRUE(now.loaded());
}

TEST(StepProgress, AStepIsFinishedAtItsEnd) {
  EXPECT_EQ(FinishedStep(At(7, v1::WAITS_FOR_FRAME)), 6);
  EXPECT_EQ(FinishedStep(At(7, v1::EXECUTES)), 6);
  EXPECT_EQ(FinishedStep(At(7, v1::FINISHED)), 7);
}

TEST(StepProgress, PlacesAreInTheOrderInWhichAStepReachesThem) {
  const std::vector<v1::Heartbeat> order = {
      At(1, v1::FINISHED),     At(2, v1::WAITS_FOR_FRAME),
      At(2, v1::PLANS),        At(2, v1::WAITS_FOR_DIGEST),
      At(2, v1::EXECUTES, 56), At(2, v1::EXECUTES, 57),
      At(2, v1::FINISHED, 58), At(3, v1::WAITS_FOR_FRAME, 58),
  };
  for (size_t a = 0; a < order.size(); ++a) {
    for (size_t b = 0; b < order.size(); ++b) {
      EXPECT_EQ(IsBehind(order[a], order[b]), a < b) << a << ", " << b;
    }
  }
}

}  // namespace
}  // namespace lockstep
