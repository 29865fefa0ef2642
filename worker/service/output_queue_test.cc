#include "worker/service/output_queue.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace lockstep {
namespace {

TEST(OutputQueue, TakesEverythingOnceAndInOrder) {
  constexpr uint32_t kSteps = 2000;
  uint32_t expected = 0;
  {
    OutputQueue queue([&](absl::Span<StepOutput> outputs) {
      for (const StepOutput& output : outputs) {
        EXPECT_EQ(output.token, expected++);
      }
    });
    uint32_t token = 0;
    for (uint32_t step = 0; step < kSteps; ++step) {
      for (uint32_t i = 0; i < step % 4; ++i) queue.Add({.token = token++});
      queue.Flush();
    }
    queue.Add({.token = token});  // which the destructor hands over
  }
  EXPECT_EQ(expected, kSteps / 4 * 6 + 1);
}

TEST(OutputQueue, NothingGoesOverBeforeTheStepEnds) {
  absl::Notification first;
  std::atomic<int> taken = 0;
  OutputQueue queue([&](absl::Span<StepOutput> outputs) {
    taken += outputs.size();
    first.Notify();
  });
  queue.Add({.token = 1});
  queue.Add({.token = 2});
  EXPECT_FALSE(first.HasBeenNotified());
  queue.Flush();
  first.WaitForNotification();
  EXPECT_EQ(taken, 2);
}

TEST(OutputQueue, AFullQueueHoldsTheStepUntilItIsTaken) {
  absl::Notification taking, may_go_on;
  std::atomic<size_t> taken = 0;
  std::atomic<bool> flushed = false;
  OutputQueue queue([&](absl::Span<StepOutput> outputs) {
    if (taken == 0) {
      taking.Notify();
      may_go_on.WaitForNotification();
      EXPECT_FALSE(flushed);
    }
    taken += outputs.size();
  });
  queue.Add({});
  queue.Flush();
  taking.WaitForNotification();
  for (size_t i = 0; i < OutputQueue::kMaxWaiting; ++i) queue.Add({});
  queue.Flush();  // which fills it, and does not wait
  std::thread releaser([&] { may_go_on.Notify(); });
  queue.Add({});
  queue.Flush();
  flushed = true;
  EXPECT_GE(taken, 1);
  releaser.join();
}

}  // namespace
}  // namespace lockstep
