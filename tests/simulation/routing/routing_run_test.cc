// A small run of each policy; `./lockstep bench routing` takes a million
// requests.

#include "tests/simulation/routing/routing_run.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::testing {
namespace {

RoutingResult Simulate(const std::string& policy, int gateways = 1) {
  RoutingRunOptions options;
  options.policy = policy;
  options.gateways = gateways;
  options.groups = 8;
  options.dialogues_per_s = 22;
  options.requests = 6'000;
  const auto result = RunRouting(options);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

double Imbalance(const RoutingResult& result) {
  return result.max_sequences / result.sequences;
}

TEST(RoutingRun, TheSameOptionsGiveTheSameResult) {
  EXPECT_EQ(Simulate("least_load").ttft_p99_s,
            Simulate("least_load").ttft_p99_s);
}

TEST(RoutingRun, AffinityFindsPrefixesAndBalancesAsWell) {
  const RoutingResult turns = Simulate("round_robin");
  const RoutingResult load = Simulate("least_load");
  const RoutingResult hash = Simulate("prefix_hash");
  const RoutingResult affinity = Simulate("prefix_affinity");
  EXPECT_GT(hash.hit_rate, turns.hit_rate + 0.1);
  EXPECT_GT(affinity.hit_rate, hash.hit_rate);
  EXPECT_GT(affinity.hit_rate, load.hit_rate + 0.1);
  EXPECT_LT(Imbalance(load), 1.1);
  EXPECT_LT(Imbalance(affinity), 1.25);
  EXPECT_LT(affinity.ttft_p50_s, turns.ttft_p50_s);
  EXPECT_LT(affinity.ttft_p99_s, turns.ttft_p99_s);
}

TEST(RoutingRun, HashingDoesNotMindHowManyGatewaysThereAre) {
  EXPECT_NEAR(Simulate("prefix_hash", 4).hit_rate,
              Simulate("prefix_hash").hit_rate, 0.05);
}

TEST(RoutingRun, AnUnknownPolicyIsRefused) {
  RoutingRunOptions options;
  options.policy = "random";
  EXPECT_EQ(RunRouting(options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep::testing
