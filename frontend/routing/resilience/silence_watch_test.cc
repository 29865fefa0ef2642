#include "frontend/routing/resilience/silence_watch.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

absl::Time At(int seconds) { return absl::FromUnixSeconds(1000 + seconds); }

TEST(SilenceWatch, TheFirstTokenHasItsTimeHoweverSoonTheRequestIsAccepted) {
  SilenceWatch watch({});
  watch.OnAttempt(At(0));
  watch.OnMessage(/*has_token=*/false);
  watch.OnRead(At(50));
  EXPECT_EQ(watch.NextLook(At(50)), At(120));
  EXPECT_FALSE(watch.IsTooLong(At(119)));
  EXPECT_TRUE(watch.IsTooLong(At(120)));
}

TEST(SilenceWatch, EachFurtherTokenHasAMinute) {
  SilenceWatch watch({});
  watch.OnAttempt(At(0));
  for (const int second : {100, 159, 200}) {
    watch.OnMessage(/*has_token=*/true);
    watch.OnRead(At(second));
  }
  EXPECT_EQ(watch.NextLook(At(201)), At(260));
  EXPECT_FALSE(watch.IsTooLong(At(259)));
  EXPECT_TRUE(watch.IsTooLong(At(260)));
}

TEST(SilenceWatch, WhatIsNotReadIsNotLate) {
  SilenceWatch watch({});
  watch.OnAttempt(At(0));
  watch.OnMessage(/*has_token=*/true);
  EXPECT_FALSE(watch.IsTooLong(At(10'000)));
  EXPECT_EQ(watch.NextLook(At(10'000)), At(10'060));
  watch.OnRead(At(10'000));
  EXPECT_FALSE(watch.IsTooLong(At(10'059)));
  EXPECT_TRUE(watch.IsTooLong(At(10'060)));
}

TEST(SilenceWatch, AnotherAttemptBeginsAnew) {
  SilenceWatch watch({});
  watch.OnAttempt(At(0));
  watch.OnMessage(/*has_token=*/true);
  watch.OnRead(At(1));
  watch.OnAttempt(At(30));
  EXPECT_EQ(watch.NextLook(At(30)), At(150));
}

}  // namespace
}  // namespace lockstep
