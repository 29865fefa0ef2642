// Groups of ranks in one process, over bytes in memory. For a longer run set
// LOCKSTEP_SIMULATION_STEPS (over all ranks); LOCKSTEP_SIMULATION_SEED repeats
// one, LOCKSTEP_SIMULATION_REPLAY=FILE a scenario that was printed.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "tests/simulation/draw_scenario.h"
#include "tests/simulation/explore.h"
#include "tests/testing/read_file.h"

namespace lockstep::testing {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

uint64_t FirstSeed() {
  const uint64_t seed =
      FromEnvironment("LOCKSTEP_SIMULATION_SEED", std::random_device()());
  std::cout << "LOCKSTEP_SIMULATION_SEED=" << seed << std::endl;
  return seed;
}

void ExpectNone(const std::optional<Failure>& failure) {
  if (failure.has_value()) ADD_FAILURE() << ShrinkAndDescribe(*failure);
}

Scenario ReadScenario(const std::string& path) {
  Scenario scenario;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(ReadFile(path),
                                                            &scenario) &&
              scenario.events_size() > 0)
      << path << " holds no scenario";
  return scenario;
}

// Whether steps overlap.
class Simulation : public ::testing::TestWithParam<bool> {
 protected:
  Scenario As(Scenario scenario) const {
    return GetParam() ? Overlapped(std::move(scenario)) : scenario;
  }
};

INSTANTIATE_TEST_SUITE_P(Overlap, Simulation, ::testing::Bool());

TEST_P(Simulation, RanksAgreeAndLoseNothing) {
  const uint64_t steps = FromEnvironment("LOCKSTEP_SIMULATION_STEPS",
                                         GetParam() ? 300'000 : 1'000'000);
  const auto start = std::chrono::steady_clock::now();
  Totals totals;
  ExpectNone(Explore(
      FirstSeed(), steps, [&](uint64_t s) { return As(DrawScenario(s)); },
      &totals));
  if (HasFailure()) return;
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  std::cout << "in " << took.count() << " s, "
            << totals.rank_steps() / took.count() * 60
            << " steps a minute: " << totals.ShortDebugString() << "\n";
  EXPECT_GE(totals.rank_steps(), steps);
  // The traffic went everywhere.
  EXPECT_GT(totals.cached_tokens(), 0);
  EXPECT_GT(totals.preemptions(), 0);
  EXPECT_GT(totals.ended_by_length(), 0);
  EXPECT_GT(totals.ended_by_stop(), 0);
  EXPECT_GT(totals.aborted_unknown(), 0);
  EXPECT_GT(totals.aborted_waiting(), 0);
  EXPECT_GT(totals.aborted_in_prefill(), 0);
  EXPECT_GT(totals.aborted_in_decode(), 0);
  EXPECT_GT(totals.aborted_ended(), 0);
}

TEST_P(Simulation, EveryFaultIsFoundBeforeItsStepIsExecuted) {
  const uint64_t seed = FirstSeed();
  for (int i = Fault::DROP_MESSAGE; i <= Fault::Kind_MAX; ++i) {
    const auto kind = static_cast<Fault::Kind>(i);
    SCOPED_TRACE(Fault::Kind_Name(kind));
    Totals totals;
    ExpectNone(Explore(
        seed, /*rank_steps=*/1,
        [&](uint64_t s) { return As(DrawFaultyScenario(kind, s)); }, &totals));
    if (HasFailure()) return;
    EXPECT_GT(totals.faults(), 8);
    std::cout << Fault::Kind_Name(kind) << ": " << totals.faults() << " of "
              << totals.scenarios() << " scenarios\n";
  }
}

// Scenarios that failed once.
TEST(SimulationOfFiles, WhatWasFoundStaysMended) {
  int number = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("tests/simulation/found")) {
    SCOPED_TRACE(entry.path().string());
    const absl::Status status =
        SimulateInChild(ReadScenario(entry.path().string()));
    EXPECT_TRUE(status.ok()) << status;
    ++number;
  }
  EXPECT_GT(number, 0);
}

TEST(SimulationOfFiles, Replay) {
  const char* const path = std::getenv("LOCKSTEP_SIMULATION_REPLAY");
  if (path == nullptr) GTEST_SKIP() << "no LOCKSTEP_SIMULATION_REPLAY";
  const absl::Status status = SimulateInChild(ReadScenario(path));
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace lockstep::testing
