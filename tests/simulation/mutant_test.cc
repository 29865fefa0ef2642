// The simulation can fail: linked with a file in which one line is wrong, it
// says so, and what it prints fails again.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include "tests/simulation/draw_scenario.h"
#include "tests/simulation/explore.h"

namespace lockstep::testing {

// Behind the changed source: see mutants.bzl.
extern const Fault::Kind kMutantFault;
extern const bool kMutantOverlaps;
extern const char kMutantFound[];

namespace {

TEST(Mutant, IsFoundAndShrunk) {
  Totals totals;
  const std::optional<Failure> failure = Explore(
      /*first_seed=*/1, /*rank_steps=*/300'000,
      [](uint64_t seed) {
        Scenario scenario = DrawFaultyScenario(kMutantFault, seed);
        return kMutantOverlaps ? Overlapped(std::move(scenario)) : scenario;
      },
      &totals);
  ASSERT_TRUE(failure.has_value()) << totals.ShortDebugString();
  EXPECT_THAT(std::string(failure->why.message()),
              ::testing::ContainsRegex(kMutantFound));
  const std::string text = ShrinkAndDescribe(*failure);
  std::cout << text;
  Scenario shrunk;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      text.substr(text.find("\nseed: ")), &shrunk));
  EXPECT_LE(shrunk.events_size(), failure->scenario.events_size());
}

}  // namespace
}  // namespace lockstep::testing
