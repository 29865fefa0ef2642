// A worker group under mixed traffic for minutes: docs/reliability.md.

#include <absl/status/statusor.h>
#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/chaos/soak.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"

DEFINE_double(minutes, 20, "of traffic.");
DEFINE_int32(ranks, 2, "of the group: 1, 2, 4 or 8.");
DEFINE_int32(clients, 12, "that each have one call at a time.");
DEFINE_uint64(seed, 1, "of the requests.");
DEFINE_string(worker, "worker/worker", "the binary.");

int main(int argc, char** argv) {
  gflags::SetUsageMessage("keeps a worker group under mixed traffic.");
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  const std::filesystem::path model =
      std::filesystem::temp_directory_path() / "lockstep-soak.gguf";
  lockstep::testing::TinyModel tiny;
  tiny.max_context = 2000;
  lockstep::testing::WriteGguf(tiny, model);
  std::printf("seed %llu\n", static_cast<unsigned long long>(FLAGS_seed));
  std::fflush(stdout);
  const auto report =
      lockstep::testing::Soak({.worker = FLAGS_worker,
                               .model = model,
                               .size = FLAGS_ranks,
                               .clients = FLAGS_clients,
                               .duration = absl::Seconds(60 * FLAGS_minutes),
                               .seed = FLAGS_seed});
  std::filesystem::remove(model);
  const std::string text =
      report.ok() ? report->ToString() : std::string(report.status().message());
  std::printf("%s\n%s\n", text.c_str(), report.ok() ? "passed" : "FAILED");
  return report.ok() ? 0 : 1;
}
