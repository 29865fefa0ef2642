// Kills worker groups under streams that must not notice: docs/reliability.md.

#include <absl/time/time.h>
#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/chaos/failover_run.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"

DEFINE_double(seconds, 60, "of traffic.");
DEFINE_double(kill_every, 2, "seconds.");
DEFINE_int32(groups, 3, "behind the gateway; at least 2.");
DEFINE_int32(streams, 64, "that each have one answer at a time.");
DEFINE_int32(max_tokens, 400, "of an answer.");
DEFINE_uint64(seed, 1, "of the victims and the requests.");
DEFINE_string(routing_policy, "prefix_affinity", "the gateway's.");
DEFINE_string(worker, "worker/worker", "the binary.");
DEFINE_string(gateway, "frontend/gateway", "the binary.");

int main(int argc, char** argv) {
  gflags::SetUsageMessage("kills worker groups under streams.");
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  const std::filesystem::path model =
      std::filesystem::temp_directory_path() / "lockstep-failover.gguf";
  lockstep::testing::TinyModel tiny;
  tiny.max_context = 8000;
  lockstep::testing::WriteGguf(tiny, model);
  std::printf("seed %llu\n", static_cast<unsigned long long>(FLAGS_seed));
  std::fflush(stdout);
  const auto report = lockstep::testing::RunFailover(
      {.fleet = {.worker = FLAGS_worker,
                 .gateway = FLAGS_gateway,
                 .model = model,
                 .groups = FLAGS_groups,
                 .gateway_flags = {"--routing_policy=" + FLAGS_routing_policy}},
       .streams = FLAGS_streams,
       .max_tokens = FLAGS_max_tokens,
       .duration = absl::Seconds(FLAGS_seconds),
       .kill_every = absl::Seconds(FLAGS_kill_every),
       .seed = FLAGS_seed});
  std::filesystem::remove(model);
  const std::string text =
      report.ok() ? report->ToString() : std::string(report.status().message());
  std::printf("%s\n%s\n", text.c_str(), report.ok() ? "passed" : "FAILED");
  return report.ok() ? 0 : 1;
}
