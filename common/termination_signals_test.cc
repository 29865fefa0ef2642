#include "common/termination_signals.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "tests/testing/ranks/hanging_log.h"

namespace lockstep {
namespace {

TEST(TerminationSignals, TheFirstBeginsAndTheSecondHurries) {
  absl::Notification begun, hurried;
  TerminationSignals signals({.grace = absl::Hours(1),
                              .begin = [&] { begun.Notify(); },
                              .hurry = [&] { hurried.Notify(); }});
  kill(getpid(), SIGTERM);
  begun.WaitForNotification();
  EXPECT_FALSE(hurried.HasBeenNotified());
  kill(getpid(), SIGINT);
  hurried.WaitForNotification();
}

TEST(TerminationSignals, NobodyNeedReadTheLog) {
  testing::HangingLog log;
  absl::Notification begun, hurried;
  bool logged = false;
  {
    TerminationSignals signals({.grace = absl::Hours(1),
                                .begin = [&] { begun.Notify(); },
                                .hurry = [&] { hurried.Notify(); },
                                .log = [&] { logged = true; }});
    kill(getpid(), SIGTERM);
    begun.WaitForNotification();
    log.hangs.WaitForNotification();
    kill(getpid(), SIGTERM);
    hurried.WaitForNotification();
    log.go_on.Notify();
  }
  EXPECT_TRUE(logged);
}

TEST(TerminationSignals, TheGraceHurriesToo) {
  absl::Notification hurried;
  TerminationSignals signals({.grace = absl::Milliseconds(1),
                              .begin = [] {},
                              .hurry = [&] { hurried.Notify(); }});
  kill(getpid(), SIGINT);
  hurried.WaitForNotification();
}

TEST(TerminationSignals, TheSecondOneAndTheGraceHurryOnce) {
  int hurries = 0;
  absl::Notification hurried;
  {
    TerminationSignals signals(
        {.grace = absl::Milliseconds(1),
         // Both are due by the time that this is over.
         .begin =
             [] {
               kill(getpid(), SIGINT);
               const auto begin = std::chrono::steady_clock::now();
               while (std::chrono::steady_clock::now() - begin <
                      std::chrono::milliseconds(5)) {
               }
             },
         .hurry =
             [&] {
               ++hurries;
               if (!hurried.HasBeenNotified()) hurried.Notify();
             }});
    kill(getpid(), SIGTERM);
    hurried.WaitForNotification();
  }
  EXPECT_EQ(hurries, 1);
}

TEST(TerminationSignals, TheFirstCanBeWaitedForThoughItCameBefore) {
  TerminationSignals signals({});
  kill(getpid(), SIGTERM);
  signals.AwaitFirst();
}

TEST(TerminationSignals, WhatHasBegunWithoutASignalHurriesAtTheSecondOne) {
  int begins = 0;
  absl::Notification hurried;
  {
    TerminationSignals signals({.grace = absl::Hours(1),
                                .begin = [&] { ++begins; },
                                .hurry = [&] { hurried.Notify(); }});
    signals.Begin();
    signals.Begin();
    signals.AwaitFirst();
    kill(getpid(), SIGTERM);
    // One that comes before the other was seen is no second one.
    while (!hurried.WaitForNotificationWithTimeout(absl::Milliseconds(10))) {
      kill(getpid(), SIGTERM);
    }
  }
  EXPECT_EQ(begins, 1);
}

TEST(TerminationSignals, WithoutHurryTheSecondOneEndsTheProcess) {
  const auto signal_twice = [] {
    TerminationSignals signals({});
    kill(getpid(), SIGINT);
    signals.AwaitFirst();
    raise(SIGINT);
  };
  EXPECT_EXIT(signal_twice(), ::testing::KilledBySignal(SIGINT), "");
}

TEST(TerminationSignals, OutsideOfItsLifeASignalEndsTheProcess) {
  {
    TerminationSignals signals(
        {.grace = absl::Hours(1), .begin = [] {}, .hurry = [] {}});
  }
  EXPECT_EXIT(raise(SIGTERM), ::testing::KilledBySignal(SIGTERM), "");
}

TEST(IgnoreTerminationSignals, AFollowerLivesOn) {
  EXPECT_EXIT(
      {
        IgnoreTerminationSignals();
        raise(SIGTERM);
        raise(SIGINT);
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(TerminationSignalsDeathTest, BeforeServingOneEndsTheProcessInOrder) {
  for (const int signal : {SIGTERM, SIGINT}) {
    EXPECT_EXIT(
        {
          ExitAtTermination("worker");
          raise(signal);
        },
        ::testing::ExitedWithCode(0),
        "worker: ended by a signal before it served.");
  }
}

TEST(TerminationSignalsDeathTest, ServingTakesTheSignalsOver) {
  EXPECT_EXIT(
      {
        ExitAtTermination("worker");
        TerminationSignals signals({});
        raise(SIGTERM);
        signals.AwaitFirst();
        _exit(7);
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace lockstep
