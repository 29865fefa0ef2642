#include "common/text_pool.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

namespace lockstep {
namespace {

TEST(TextPool, RunsWhatIsQueuedBeforeItEnds) {
  std::atomic<int> ran{0};
  {
    TextPool pool("test", 2, {.tasks = 100});
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(pool.Run(1, [&] { ++ran; }).ok());
    }
  }
  EXPECT_EQ(ran, 100);
}

TEST(TextPool, RefusesWhenFull) {
  absl::Notification running, release;
  TextPool pool("test", 1, {.tasks = 2, .bytes = 10});
  ASSERT_TRUE(pool.Run(9,
                       [&] {
                         running.Notify();
                         release.WaitForNotification();
                       })
                  .ok());
  running.WaitForNotification();
  EXPECT_TRUE(pool.Run(4, [] {}).ok());
  EXPECT_EQ(pool.Run(7, [] { FAIL(); }),
            absl::ResourceExhaustedError(
                "4 bytes of text already wait for the test threads, 7 more "
                "would pass the limit of 10; try again later."));
  EXPECT_TRUE(pool.Run(6, [] {}).ok());
  EXPECT_EQ(pool.Run(0, [] { FAIL(); }),
            absl::ResourceExhaustedError(
                "2 texts already wait for the test threads; try again later."));
  release.Notify();
}

TEST(TextPool, WhatWasForgottenDoesNotRunAndTakesNoRoom) {
  absl::Notification running, release;
  TextPool pool("test", 1, {.tasks = 2, .bytes = 10});
  ASSERT_TRUE(pool.Run(9,
                       [&] {
                         running.Notify();
                         release.WaitForNotification();
                       })
                  .ok());
  running.WaitForNotification();
  const auto held = std::make_shared<int>(0);
  EXPECT_TRUE(pool.Run(5, [held] { FAIL(); }).ok());
  EXPECT_TRUE(pool.Run(5, [held] { FAIL(); }).ok());
  pool.Clear();
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_TRUE(pool.Run(10, [] {}).ok());
  release.Notify();
}

TEST(TextPool, ATaskCanQueueAnother) {
  absl::Notification done;
  TextPool pool("test", 1, {.tasks = 1});
  ASSERT_TRUE(
      pool.Run(1,
               [&] { EXPECT_TRUE(pool.Run(1, [&] { done.Notify(); }).ok()); })
          .ok());
  done.WaitForNotification();
}

TEST(TextPool, LargeTextsLeaveAThreadToTheOthers) {
  constexpr size_t kLarge = TextPool::kLargeBytes + 1;
  absl::Notification release, small_done;
  std::atomic<int> large_done{0};
  {
    TextPool pool("test", 2, {.tasks = 10});
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(pool.Run(kLarge,
                           [&] {
                             release.WaitForNotification();
                             ++large_done;
                           })
                      .ok());
    }
    ASSERT_TRUE(pool.Run(1, [&] { small_done.Notify(); }).ok());
    small_done.WaitForNotification();
    EXPECT_EQ(large_done, 0);
    release.Notify();
  }
  EXPECT_EQ(large_done, 3);
}

TEST(TextPool, OneThreadDoesLargeTextsToo) {
  absl::Notification done;
  TextPool pool("test", 1, {.tasks = 1});
  ASSERT_TRUE(pool.Run(TextPool::kLargeBytes + 1, [&] { done.Notify(); }).ok());
  done.WaitForNotification();
}

}  // namespace
}  // namespace lockstep
