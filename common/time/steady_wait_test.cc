#include "common/time/steady_wait.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

class SteadyWaitTest : public ::testing::Test {
 protected:
  bool Wait(absl::Duration timeout) {
    std::unique_lock lock(mutex_);
    return WaitFor(changed_, lock, timeout, [&] { return done_; });
  }

  void SetDone() {
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

TEST_F(SteadyWaitTest, EndsAtItsTimeAndNotBefore) {
  const Clock::time_point begin = Clock::now();
  EXPECT_FALSE(Wait(absl::Milliseconds(20)));
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(20));
}

TEST_F(SteadyWaitTest, EndsWhenItIsDoneHoweverLongTheTimeout) {
  std::thread other([&] { SetDone(); });
  EXPECT_TRUE(Wait(absl::InfiniteDuration()));
  other.join();
}

TEST_F(SteadyWaitTest, LooksOnceWhereThereIsNoTime) {
  EXPECT_FALSE(Wait(absl::ZeroDuration()));
  EXPECT_FALSE(Wait(-absl::InfiniteDuration()));
  SetDone();
  EXPECT_TRUE(Wait(absl::ZeroDuration()));
}

}  // namespace
}  // namespace lockstep
