#include "worker/group/queue_pace.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class QueuePaceTest : public ::testing::Test {
 protected:
  // `number` requests of `tokens` leave, one every `each`.
  void Leave(int number, int tokens, milliseconds each) {
    for (int i = 0; i < number; ++i) pace_.Left(tokens, now_ += each);
  }

  QueuePace::Clock::time_point now_;
  QueuePace pace_;
};

TEST_F(QueuePaceTest, KnowsNothingAtFirst) {
  pace_.Begin(now_);
  EXPECT_EQ(pace_.TimeForRequests(100), QueuePace::kUnknown);
  EXPECT_EQ(pace_.TimeForTokens(100), QueuePace::kUnknown);
}

TEST_F(QueuePaceTest, ASteadyPaceGoesOn) {
  pace_.Begin(now_);
  Leave(50, /*tokens=*/100, milliseconds(200));
  EXPECT_NEAR(absl::ToDoubleSeconds(pace_.TimeForRequests(10)), 2, 1e-6);
  EXPECT_NEAR(absl::ToDoubleSeconds(pace_.TimeForTokens(10'000)), 20, 1e-6);
}

TEST_F(QueuePaceTest, ANewPaceCountsSoon) {
  pace_.Begin(now_);
  Leave(50, 100, milliseconds(200));
  Leave(50, 100, milliseconds(1000));
  EXPECT_NEAR(absl::ToDoubleSeconds(pace_.TimeForRequests(10)), 10, 0.1);
}

TEST_F(QueuePaceTest, AnEmptyQueuesTimeDoesNotCount) {
  pace_.Begin(now_);
  Leave(5, 100, milliseconds(200));
  pace_.Begin(now_ += seconds(3600));
  Leave(5, 100, milliseconds(200));
  EXPECT_NEAR(absl::ToDoubleSeconds(pace_.TimeForRequests(10)), 2, 1e-6);
}

TEST_F(QueuePaceTest, StaysWithinBounds) {
  pace_.Begin(now_);
  Leave(5, 100, milliseconds(1));
  EXPECT_EQ(pace_.TimeForRequests(1), QueuePace::kLeast);
  Leave(50, 100, seconds(60));
  EXPECT_EQ(pace_.TimeForRequests(10), QueuePace::kMost);
}

}  // namespace
}  // namespace lockstep
