#include "common/program/hangups.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace lockstep {
namespace {

TEST(HangupsTest, AreCountedAndEndNothing) {
  CountHangups();
  const int before = NumHangups();
  raise(SIGHUP);
  raise(SIGHUP);
  CountHangups();
  raise(SIGHUP);
  EXPECT_EQ(NumHangups(), before + 3);
}

}  // namespace
}  // namespace lockstep
