#include "common/timer_thread.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

using Clock = TimerThread::Clock;
using std::chrono::hours;
using std::chrono::milliseconds;

TEST(TimerThread, CallsInTheOrderOfTheTimesAndNotBefore) {
  TimerThread timers;
  std::vector<int> order;
  absl::Notification done;
  const Clock::time_point now = Clock::now();
  timers.At(now + milliseconds(40), [&] {
    order.push_back(3);
    done.Notify();
  });
  timers.At(now + milliseconds(20), [&] { order.push_back(2); });
  timers.At(now - milliseconds(1), [&] { order.push_back(1); });
  done.WaitForNotification();
  EXPECT_GE(Clock::now(), now + milliseconds(40));
  EXPECT_EQ(order, std::vector<int>({1, 2, 3}));
}

TEST(TimerThread, ACancelledOneIsNotCalled) {
  TimerThread timers;
  std::atomic<bool> called = false;
  absl::Notification done;
  const Clock::time_point time = Clock::now() + milliseconds(20);
  const uint64_t id = timers.At(time, [&] { called = true; });
  timers.At(time, [&] { done.Notify(); });
  timers.Cancel(id);
  timers.Cancel(id);
  done.WaitForNotification();
  EXPECT_FALSE(called);
}

TEST(TimerThread, ACallMayMakeAndCancelOthers) {
  TimerThread timers;
  absl::Notification done;
  std::atomic<bool> called = false;
  const uint64_t id =
      timers.At(Clock::now() + hours(1), [&] { called = true; });
  timers.At(Clock::now(), [&] {
    timers.Cancel(id);
    timers.At(Clock::now(), [&] { done.Notify(); });
  });
  done.WaitForNotification();
  EXPECT_FALSE(called);
}

// What the calls use may end after it.
TEST(TimerThread, StopWaitsForARunningCallAndNoOtherComes) {
  TimerThread timers;
  absl::Notification running, go_on;
  std::atomic<bool> has_ended = false, called = false;
  timers.At(Clock::now(), [&] {
    running.Notify();
    go_on.WaitForNotification();
    has_ended = true;
  });
  running.WaitForNotification();
  std::thread releaser([&] { go_on.Notify(); });
  timers.Stop();
  EXPECT_TRUE(has_ended);
  releaser.join();
  timers.Cancel(timers.At(Clock::now(), [&] { called = true; }));
  timers.At(Clock::now(), [&] { called = true; });
  timers.Stop();
  EXPECT_FALSE(called);
}

TEST(TimerThread, TheDestructorWaitsForNone) {
  std::atomic<bool> called = false;
  {
    TimerThread timers;
    timers.At(Clock::time_point::max(), [&] { called = true; });
  }
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace lockstep
