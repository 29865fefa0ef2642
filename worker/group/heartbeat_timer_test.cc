#include "worker/group/heartbeat_timer.h"

#include <gtest/gtest.h>

#include <chrono>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

TEST(HeartbeatTimer, BeatsUntilItIsStopped) {
  boost::asio::io_context context;
  int beats = 0;
  HeartbeatTimer timer(context, absl::Milliseconds(1), [&] {
    if (++beats == 5) timer.Stop();
  });
  timer.Start();
  context.run();  // ends when nothing is left to do
  EXPECT_EQ(beats, 5);
}

// As after a process was stopped: it can not take the pause for its peers'.
TEST(HeartbeatTimer, WhatWasMissedIsNotCaughtUpOn) {
  constexpr std::chrono::milliseconds kInterval(50);
  boost::asio::io_context context;
  int beats = 0;
  HeartbeatTimer timer(context, absl::FromChrono(kInterval), [&] { ++beats; });
  timer.Start();
  const auto end = Clock::now() + 10 * kInterval;
  while (Clock::now() < end) {
  }
  EXPECT_TRUE(timer.WasLate(absl::ZeroDuration()));
  context.poll();
  EXPECT_LE(beats, 2);
  EXPECT_GE(beats, 1);
  EXPECT_TRUE(timer.WasLate(absl::Hours(1)));
}

TEST(HeartbeatTimer, OneThatKeepsTimeIsNotLate) {
  boost::asio::io_context context;
  HeartbeatTimer timer(context, absl::Hours(1), [] {});
  timer.Start();
  context.poll();
  EXPECT_FALSE(timer.WasLate(absl::Hours(1)));
}

}  // namespace
}  // namespace lockstep
