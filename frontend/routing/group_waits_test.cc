#include "frontend/routing/group_waits.h"

#include <absl/synchronization/blocking_counter.h>
#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <thread>

#include "frontend/routing/routing_clock.h"

namespace lockstep {
namespace {

const absl::Time kNever = RoutingNow() + absl::Hours(24);

// In the order of GroupSet's: the timers end first.
struct Waits {
  GroupWaits waits{&timers};
  TimerThread timers;
};

TEST(GroupWaits, EachIsOverAtItsTime) {
  Waits w;
  absl::Notification over;
  EXPECT_NE(w.waits.Add(kNever, [] { FAIL(); }), 0);
  w.waits.Add(RoutingNow() + absl::Milliseconds(1), [&] { over.Notify(); });
  over.WaitForNotification();
  EXPECT_EQ(w.waits.number(), 1);
}

TEST(GroupWaits, OneThatIsEndedIsCalledOnTheTimersThread) {
  Waits w;
  absl::Notification over;
  std::thread::id thread;
  const uint64_t id = w.waits.Add(kNever, [&] {
    thread = std::this_thread::get_id();
    over.Notify();
  });
  w.waits.Add(kNever, [] { FAIL(); });
  w.waits.End(id);
  over.WaitForNotification();
  EXPECT_NE(thread, std::this_thread::get_id());
  w.waits.End(id);  // of which a second call would be a second Notify
  EXPECT_EQ(w.waits.number(), 1);
}

TEST(GroupWaits, AllAreCalledOnceWhenAllAreEnded) {
  constexpr int kWaits = 100;
  absl::BlockingCounter called(kWaits);  // does not stand one call more
  Waits w;
  for (int i = 0; i < kWaits; ++i) {
    w.waits.Add(kNever, [&] { called.DecrementCount(); });
  }
  EXPECT_EQ(w.waits.number(), kWaits);
  w.waits.EndAll();
  EXPECT_EQ(w.waits.number(), 0);
  called.Wait();
}

// Those that end by time, by themselves and with all, at the same moment.
TEST(GroupWaits, HoweverManyEndOneItIsCalledOnce) {
  for (int round = 0; round < 200; ++round) {
    absl::BlockingCounter called(1);
    Waits w;
    const uint64_t id = w.waits.Add(RoutingNow() + absl::Microseconds(round),
                                    [&] { called.DecrementCount(); });
    std::thread other([&] { w.waits.End(id); });
    w.waits.EndAll();
    other.join();
    called.Wait();
  }
}

}  // namespace
}  // namespace lockstep
