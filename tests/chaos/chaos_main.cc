// Plays rounds of chaos with real processes: docs/reliability.md.

#include <absl/status/status.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <gflags/gflags.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/chaos/play_round.h"
#include "tests/chaos/round.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"

DEFINE_int32(rounds, 20, "how many rounds are played.");
DEFINE_uint64(seed, 1, "of the rounds; the same one plays the same.");
DEFINE_int32(only, 0, "the number of the one round to play; 0: all.");
DEFINE_string(worker, "worker/worker", "the binary.");

namespace lockstep::testing {
namespace {

// Whether it passed.
bool PlayAndTell(const Round& round, const Arena& arena) {
  std::printf("%s: ", round.ToString().c_str());
  std::fflush(stdout);
  const absl::Time begin = absl::Now();
  const absl::Status status = PlayRound(round, arena);
  std::printf("%s (%.1f s)\n", status.ok() ? "passed" : "FAILED",
              absl::ToDoubleSeconds(absl::Now() - begin));
  if (!status.ok()) {
    std::printf("%s\n", std::string(status.message()).c_str());
  }
  return status.ok();
}

int Main() {
  const std::filesystem::path model =
      std::filesystem::temp_directory_path() / "lockstep-chaos.gguf";
  TinyModel tiny;
  tiny.max_context = kArenaContext;
  WriteGguf(tiny, model);
  const Arena arena = {.worker = FLAGS_worker, .model = model};
  std::printf("seed %llu\n", static_cast<unsigned long long>(FLAGS_seed));
  const bool can_fill_shm = CanFillShm();
  int passed = 0, failed = 0;
  for (const Round& round : DrawRounds(FLAGS_rounds, FLAGS_seed)) {
    if (FLAGS_only > 0 && round.number != FLAGS_only) continue;
    if (round.fault == GroupFault::kNoShm && !can_fill_shm) {
      std::printf("%s: skipped, it takes a mount namespace\n",
                  round.ToString().c_str());
      continue;
    }
    ++(PlayAndTell(round, arena) ? passed : failed);
  }
  std::filesystem::remove(model);
  std::printf("%d passed, %d failed\n", passed, failed);
  return passed > 0 && failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  gflags::SetUsageMessage("plays rounds of chaos with worker groups.");
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  return lockstep::testing::Main();
}
