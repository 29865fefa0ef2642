#include "frontend/grpc/stream_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace lockstep {
namespace {

using Due = StreamWatch::Due;

StreamWatch::Time At(int second) {
  return StreamWatch::Time() + std::chrono::seconds(1000 + second);
}

TEST(StreamWatch, AWriteHasHalfAMinute) {
  StreamWatch watch({}, At(0));
  watch.OnWrite(At(10));
  EXPECT_EQ(watch.Look(At(39)), Due::kNothing);
  EXPECT_EQ(watch.NextLook(At(39)), At(40));
  EXPECT_EQ(watch.Look(At(40)), Due::kCut);
}

TEST(StreamWatch, TheNextWriteHasItsOwn) {
  StreamWatch watch({}, At(0));
  for (int second = 0; second < 1000; second += 29) {
    watch.OnWrite(At(second));
    EXPECT_EQ(watch.Look(At(second + 29)), Due::kNothing);
    watch.OnWritten(At(second + 29));
  }
}

TEST(StreamWatch, OnceItIsAcceptedSilenceIsBroken) {
  StreamWatch watch({}, At(0));
  EXPECT_EQ(watch.Look(At(100)), Due::kNothing);
  watch.OnAccepted();
  watch.OnWrite(At(100));
  watch.OnWritten(At(101));
  EXPECT_EQ(watch.Look(At(115)), Due::kNothing);
  EXPECT_EQ(watch.NextLook(At(115)), At(116));
  EXPECT_EQ(watch.Look(At(116)), Due::kHeartbeat);
}

TEST(StreamWatch, AllOfItHasAnEndWhateverItWaitsFor) {
  for (const bool is_accepted : {false, true}) {
    for (const bool writes : {false, true}) {
      StreamWatch watch({.total = std::chrono::seconds(100)}, At(0));
      if (is_accepted) watch.OnAccepted();
      watch.OnWrite(At(90));
      if (!writes) watch.OnWritten(At(90));
      EXPECT_EQ(watch.Look(At(99)), Due::kNothing);
      EXPECT_EQ(watch.NextLook(At(99)), At(100));
      EXPECT_EQ(watch.Look(At(100)), Due::kEnd);
      EXPECT_EQ(watch.NextLook(At(100)), At(101));
      EXPECT_EQ(watch.Look(At(101)), Due::kCut);
    }
  }
}

// Looked at only when it says so, it finds what is due in the very second.
TEST(StreamWatch, NothingIsDueBetweenTwoLooks) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::minstd_rand random(seed);
  for (int round = 0; round < 200; ++round) {
    StreamWatch watch({.total = std::chrono::seconds(200)}, At(0));
    StreamWatch::Time look = watch.NextLook(At(0));
    bool writes = false;
    for (int second = 1; second < 200; ++second) {
      StreamWatch eager = watch;
      const Due due = eager.Look(At(second));
      if (due != Due::kNothing) {
        ASSERT_EQ(look, At(second)) << "in round " << round;
      }
      if (due == Due::kCut || due == Due::kEnd) break;
      if (look == At(second)) {
        if (due == Due::kHeartbeat) {
          watch.OnWrite(At(second));
          writes = true;
        }
        look = watch.NextLook(At(second));
      }
      if (random() % 12 != 0) continue;
      watch.OnAccepted();
      if (writes) {
        watch.OnWritten(At(second));
      } else {
        watch.OnWrite(At(second));
      }
      writes = !writes;
    }
  }
}

}  // namespace
}  // namespace lockstep
