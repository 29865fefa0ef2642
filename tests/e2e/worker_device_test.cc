// A worker on a machine without a GPU, whether or not it was built for one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/e2e/worker_test_fixture.h"
#include "tests/testing/process.h"

namespace lockstep {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::Process;

// What there is no GPU for: WITH_CUDA is what --config=cuda makes of it.
#ifdef WITH_CUDA
constexpr char kWhy[] = "There is no CUDA driver on this machine: libcuda.so.1";
#else
constexpr char kWhy[] = "This program was built without kernels for GPUs: see";
#endif

class WorkerDeviceTest : public testing::WorkerTest {
 protected:
  void SetUp() override {
    if (std::filesystem::exists("/proc/driver/nvidia")) {
      GTEST_SKIP() << "this machine has a driver";
    }
  }
};

TEST_F(WorkerDeviceTest, SaysInOneSentenceWhyItHasNoGpu) {
  auto worker = *Process::Start(kWorker, Arguments(1, {"--device=cuda"}));
  EXPECT_EQ(worker->WaitForExit(kTimeout).value_or(-1), 1);
  EXPECT_THAT(worker->output(),
              ContainsRegex(std::string("\nworker: --device is cuda. ") + kWhy +
                            "[^\n]*\n$"));
}

TEST_F(WorkerDeviceTest, TakesTheCpuUnlessItIsTold) {
  const Group group(1);
  EXPECT_THAT(
      group.leader->output(),
      HasSubstr(std::string("computing on the CPU, not on a GPU: ") + kWhy));
}

}  // namespace
}  // namespace lockstep
