#include "frontend/routing/resilience/circuit_breaker.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

class CircuitBreakerTest : public ::testing::Test {
 protected:
  void Pass(int seconds) { now_ += absl::Seconds(seconds); }
  void Fail(int times) {
    for (int i = 0; i < times; ++i) {
      breaker_.OnStart(now_);
      breaker_.OnFailure(now_);
    }
  }
  void Succeed(int times) {
    for (int i = 0; i < times; ++i) {
      breaker_.OnStart(now_);
      breaker_.OnSuccess(now_);
    }
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  CircuitBreaker breaker_{{}};
};

TEST_F(CircuitBreakerTest, OpensAfterFiveFailuresInARow) {
  Fail(4);
  Succeed(1);
  Fail(4);
  EXPECT_TRUE(breaker_.Allows(now_));
  Fail(1);
  EXPECT_FALSE(breaker_.Allows(now_));
  EXPECT_TRUE(breaker_.is_open());
}

TEST_F(CircuitBreakerTest, OpensWhenHalfOfTwentyFail) {
  for (int i = 0; i < 9; ++i) {
    Fail(1);
    Succeed(1);
  }
  Fail(1);  // 10 of 19
  EXPECT_TRUE(breaker_.Allows(now_));
  Fail(1);
  EXPECT_FALSE(breaker_.Allows(now_));
}

TEST_F(CircuitBreakerTest, OldFailuresDoNotCount) {
  Fail(4);
  Pass(10);
  Fail(4);
  EXPECT_TRUE(breaker_.Allows(now_));
}

TEST_F(CircuitBreakerTest, LetsOneProbeThroughAndClosesWhenItSucceeds) {
  using State = CircuitBreaker::State;
  EXPECT_EQ(breaker_.state(now_), State::kClosed);
  Fail(5);
  Pass(9);
  EXPECT_FALSE(breaker_.Allows(now_));
  EXPECT_EQ(breaker_.state(now_), State::kOpen);
  Pass(1);
  EXPECT_TRUE(breaker_.Allows(now_));
  breaker_.OnStart(now_);
  EXPECT_FALSE(breaker_.Allows(now_));
  EXPECT_EQ(breaker_.state(now_), State::kHalfOpen);
  breaker_.OnSuccess(now_);
  EXPECT_TRUE(breaker_.Allows(now_));
  EXPECT_EQ(breaker_.state(now_), State::kClosed);
  EXPECT_FALSE(breaker_.is_open());
}

TEST_F(CircuitBreakerTest, PausesDoubleUpToAMinute) {
  Fail(5);
  for (const int pause : {10, 20, 40, 60, 60}) {
    Pass(pause - 1);
    EXPECT_FALSE(breaker_.Allows(now_)) << pause;
    Pass(1);
    EXPECT_TRUE(breaker_.Allows(now_)) << pause;
    Fail(1);
  }
}

TEST_F(CircuitBreakerTest, AProbeThatItsClientGaveUpIsNoVerdict) {
  Fail(5);
  Pass(10);
  EXPECT_TRUE(breaker_.OnStart(now_));
  EXPECT_FALSE(breaker_.OnStart(now_));
  breaker_.OnProbeGivenUp();
  EXPECT_TRUE(breaker_.is_open());
  EXPECT_TRUE(breaker_.Allows(now_));
}

TEST_F(CircuitBreakerTest, FailuresOfRequestsSentBeforeDoNotProlongThePause) {
  for (int i = 0; i < 64; ++i) breaker_.OnStart(now_);
  for (int i = 0; i < 64; ++i) breaker_.OnFailure(now_);
  Pass(10);
  EXPECT_TRUE(breaker_.Allows(now_));
}

TEST_F(CircuitBreakerTest, NewProcessesHaveACleanRecord) {
  Fail(5);
  breaker_.Reset();
  EXPECT_TRUE(breaker_.Allows(now_));
  Fail(4);
  EXPECT_TRUE(breaker_.Allows(now_));
}

}  // namespace
}  // namespace lockstep
