#include "worker/runtime/termination_signals.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

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

TEST(TerminationSignals, TheGraceHurriesToo) {
  absl::Notification hurried;
  TerminationSignals signals({.grace = absl::Milliseconds(1),
                              .begin = [] {},
                              .hurry = [&] { hurried.Notify(); }});
  kill(getpid(), SIGINT);
  hurried.WaitForNotification();
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

}  // namespace
}  // namespace lockstep
