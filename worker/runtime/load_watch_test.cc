#include "worker/runtime/load_watch.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "proto/group.pb.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class LoadWatchTest : public ::testing::Test {
 protected:
  ~LoadWatchTest() override { failure_.Disarm(); }

  GroupFailure failure_{
      {.exit_within = absl::InfiniteDuration(), .last_resort = nullptr}};
};

TEST_F(LoadWatchTest, WaitsForTheLastRank) {
  LoadWatch loads({.ranks = 3}, &failure_);
  loads.SetLoaded(2);
  loads.Start();
  loads.SetLoaded(0);
  std::thread last([&] { loads.SetLoaded(1); });
  EXPECT_TRUE(loads.WaitForAll().ok());
  last.join();
  loads.SetLoaded(1);
  EXPECT_TRUE(loads.WaitForAll().ok());
  failure_.Disarm();
}

TEST_F(LoadWatchTest, TellsAgainAndAgainWhoIsMissing) {
  std::vector<std::string> told;
  absl::Notification twice;
  LoadWatch loads({.ranks = 4,
                   .tell_every = absl::Milliseconds(5),
                   .tell =
                       [&](const std::string& who) {
                         if (told.size() == 2) return;
                         told.push_back(who);
                         if (told.size() == 2) twice.Notify();
                       }},
                  &failure_);
  loads.SetLoaded(0);
  loads.SetLoaded(2);
  loads.Start();
  twice.WaitForNotification();
  EXPECT_EQ(told[0],
            "rank 1, 3 still loads the model, for 5ms of --load_timeout of "
            "30m");
  EXPECT_THAT(told[1], HasSubstr("for 10ms of "));
  failure_.Disarm();
}

// A follower, or the leader itself: its own load may be what hangs.
TEST_F(LoadWatchTest, NamesTheRankThatDoesNotLoadInTime) {
  for (const int slow : {0, 1, 3}) {
    GroupFailure failure(
        {.exit_within = absl::InfiniteDuration(), .last_resort = nullptr});
    LoadWatch loads({.ranks = 4, .timeout = absl::Milliseconds(20)}, &failure);
    absl::Notification failed;
    failure.OnFailure([&](const auto&) { failed.Notify(); });
    for (int rank = 0; rank < 4; ++rank) {
      if (rank != slow) loads.SetLoaded(rank);
    }
    loads.Start();
    if (slow == 0) {
      failed.WaitForNotification();
    } else {
      EXPECT_EQ(loads.WaitForAll().code(), absl::StatusCode::kUnavailable);
    }
    const auto cause = failure.cause();
    ASSERT_TRUE(cause.has_value());
    EXPECT_EQ(cause->rank, slow);
    EXPECT_EQ(cause->kind, v1::START_UP_FAILED);
    EXPECT_EQ(cause->reason, absl::StrCat("rank ", slow,
                                          " did not load the model within "
                                          "--load_timeout of 20ms."));
    failure.Disarm();
  }
}

TEST_F(LoadWatchTest, AGroupThatFailsIsWaitedForNoLonger) {
  LoadWatch loads({.ranks = 2}, &failure_);
  loads.Start();
  std::thread reports([&] {
    failure_.Report({.rank = 1,
                     .kind = v1::CONNECTION_LOST,
                     .reason = "its connection was lost."});
  });
  EXPECT_EQ(loads.WaitForAll(),
            absl::UnavailableError("the worker group failed: rank 1 failed "
                                   "first: its connection was lost."));
  reports.join();
  failure_.Disarm();
}

}  // namespace
}  // namespace lockstep
