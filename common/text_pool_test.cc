#include "common/text_pool.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <atomic>

namespace lockstep {
namespace {

TEST(TextPool, RunsWhatIsQueuedBeforeItEnds) {
  std::atomic<int> ran{0};
  {
    TextPool pool("test", 2, 100);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(pool.Run([&] { ++ran; }).ok());
    }
  }
  EXPECT_EQ(ran, 100);
}

TEST(TextPool, RefusesWhenFull) {
  absl::Notification running, release;
  TextPool pool("test", 1, 2);
  ASSERT_TRUE(pool.Run([&] {
                    running.Notify();
                    release.WaitForNotification();
                  })
                  .ok());
  running.WaitForNotification();
  EXPECT_TRUE(pool.Run([] {}).ok());
  EXPECT_TRUE(pool.Run([] {}).ok());
  const absl::Status status = pool.Run([] { FAIL(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "2 texts already wait for the test threads; try again later.");
  release.Notify();
}

TEST(TextPool, ATaskCanQueueAnother) {
  absl::Notification done;
  TextPool pool("test", 1, 1);
  ASSERT_TRUE(
      pool.Run([&] { EXPECT_TRUE(pool.Run([&] { done.Notify(); }).ok()); })
          .ok());
  done.WaitForNotification();
}

}  // namespace
}  // namespace lockstep
