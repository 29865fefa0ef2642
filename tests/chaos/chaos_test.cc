// A few rounds of chaos; `./lockstep chaos --rounds 200` plays more.

#include <gtest/gtest.h>

#include <string>

#include "tests/chaos/play_round.h"
#include "tests/chaos/round.h"
#include "tests/testing/process.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"

namespace lockstep::testing {
namespace {

constexpr int kRounds = 20;
constexpr uint64_t kSeed = 1;

class ChaosTest : public ::testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() {
    TinyModel model;
    model.max_context = kArenaContext;
    WriteGguf(model, ModelPath());
  }

  static std::string ModelPath() { return ::testing::TempDir() + "chaos.gguf"; }

  // Absolute, since other programs start it too.
  static std::string WorkerPath() { return InRunfiles("worker/worker"); }
};

INSTANTIATE_TEST_SUITE_P(Rounds, ChaosTest, ::testing::Range(0, kRounds));

TEST_P(ChaosTest, EveryClientHasOneEndAndNothingIsLeft) {
  const Round round = DrawRounds(kRounds, kSeed)[GetParam()];
  SCOPED_TRACE(round.ToString());
  if (round.fault == GroupFault::kNoShm && !CanFillShm()) {
    GTEST_SKIP() << "filling /dev/shm takes a mount namespace";
  }
  const absl::Status status =
      PlayRound(round, {.worker = WorkerPath(), .model = ModelPath()});
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace lockstep::testing
