// 10,000 random schedules give the same tokens with two steps in flight, on a
// device that works beside the host, as with one. LOCKSTEP_SIMULATION_SEED
// repeats a run.

#include "tests/simulation/both_ways.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>

#include "tests/simulation/draw_scenario.h"
#include "tests/simulation/explore.h"

namespace lockstep::testing {
namespace {

constexpr uint64_t kScenarios = 10'000;

uint64_t FirstSeed() {
  const char* const given = std::getenv("LOCKSTEP_SIMULATION_SEED");
  const uint64_t seed = given == nullptr ? std::random_device()()
                                         : std::strtoull(given, nullptr, 10);
  std::cout << "LOCKSTEP_SIMULATION_SEED=" << seed << std::endl;
  return seed;
}

TEST(BothWays, GiveTheSameTokens) {
  const uint64_t first_seed = FirstSeed();
  Totals totals;
  while (totals.scenarios() < kScenarios) {
    const std::optional<Failure> failure =
        Explore(first_seed + totals.scenarios(), /*rank_steps=*/20'000,
                DrawOverlapScenario, &totals, SimulateBothWays);
    if (failure.has_value()) {
      FAIL() << ShrinkAndDescribe(*failure, SimulateBothWays);
    }
  }
  std::cout << totals.ShortDebugString() << "\n";
  // The schedules went everywhere.
  EXPECT_GT(totals.overlapped(), totals.rank_steps() / 2);
  EXPECT_GT(totals.cached_tokens(), 0);
  EXPECT_GT(totals.preemptions(), 0);
  EXPECT_GT(totals.ended_by_length(), 0);
  EXPECT_GT(totals.ended_by_stop(), 0);
  EXPECT_GT(totals.aborted_in_prefill(), 0);
  EXPECT_GT(totals.aborted_in_decode(), 0);
  EXPECT_GT(totals.faults(), kScenarios / 20);
}

}  // namespace
}  // namespace lockstep::testing
