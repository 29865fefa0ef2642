// Which group answers, by policy, simulated: docs/routing.md.

#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "tests/simulation/routing/routing_run.h"

DEFINE_int64(requests, 1'000'000, "in each run.");
DEFINE_int32(groups, 64, "that take them.");
DEFINE_int32(gateways, 1, "that send them, each knowing its own.");
DEFINE_double(dialogues_per_s, 180, "that begin.");
DEFINE_uint64(seed, 1, "of the dialogues.");

int main(int argc, char** argv) {
  gflags::SetUsageMessage("simulates routing over many worker groups.");
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  std::printf(
      "policy           hit rate  sequences  max/mean  TTFT p50  TTFT p99\n");
  for (const std::string policy :
       {"round_robin", "least_load", "prefix_hash", "prefix_affinity"}) {
    lockstep::testing::RoutingRunOptions options;
    options.policy = policy;
    options.groups = FLAGS_groups;
    options.gateways = FLAGS_gateways;
    options.requests = FLAGS_requests;
    options.dialogues_per_s = FLAGS_dialogues_per_s;
    options.seed = FLAGS_seed;
    const auto result = lockstep::testing::RunRouting(options);
    if (!result.ok()) {
      std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
      return 1;
    }
    std::printf("%-16s %7.1f%%  %9.1f  %8.2f  %5.0f ms  %5.0f ms\n",
                policy.c_str(), 100 * result->hit_rate, result->sequences,
                result->max_sequences / result->sequences,
                1000 * result->ttft_p50_s, 1000 * result->ttft_p99_s);
    std::fflush(stdout);
  }
  return 0;
}
