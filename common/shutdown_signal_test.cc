#include "common/shutdown_signal.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace lockstep {
namespace {

TEST(ShutdownSignal, WaitsForASignalThatMayHaveComeBefore) {
  ShutdownSignal shutdown;
  kill(getpid(), SIGTERM);
  EXPECT_EQ(shutdown.Wait(), SIGTERM);
}

TEST(ShutdownSignalDeathTest, ASecondOneEndsTheProcess) {
  const auto signal_twice = [] {
    ShutdownSignal shutdown;
    kill(getpid(), SIGINT);
    shutdown.Wait();
    kill(getpid(), SIGINT);
  };
  EXPECT_EXIT(signal_twice(), testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace lockstep
