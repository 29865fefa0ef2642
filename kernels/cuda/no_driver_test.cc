// A program with kernels in it starts on a machine without a driver, and a
// launch says so.
#include <gtest/gtest.h>

#include <filesystem>

#include "kernels/cuda/cuda_types.h"
#include "kernels/cuda/norm.h"

namespace lockstep::cuda {
namespace {

constexpr CudaError kCudaInsufficientDriver = 35;

TEST(NoDriver, ALaunchFails) {
  if (std::filesystem::exists("/proc/driver/nvidia")) {
    GTEST_SKIP() << "this machine has one";
  }
  const float x = 1, weight = 1;
  float y = 0;
  const RmsNormArgs<float, float> args = {&x, &weight, 0, &y, 1, 1};
  EXPECT_EQ(RmsNorm(args, nullptr), kCudaInsufficientDriver);
}

}  // namespace
}  // namespace lockstep::cuda
