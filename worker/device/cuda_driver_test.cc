#include "worker/device/cuda_driver.h"

#include <absl/status/status.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/device/fake_cuda.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGigabyte = 1 << 30;

TEST(CudaDriver, SaysInOneSentenceThatThereIsNone) {
  const absl::Status status = CudaDriver::Load("libcuda_of_nobody.so").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("There is no CUDA driver on this machine: "
                        "libcuda_of_nobody.so"));
}

TEST(CudaDriver, SaysWhatAnotherLibraryLacks) {
  const absl::Status status = CudaDriver::Load("libm.so.6").status();
  EXPECT_EQ(status, absl::FailedPreconditionError(
                        "libm.so.6 is no CUDA driver of version 13.0 or later: "
                        "it has no cuInit."));
}

TEST(CudaDriver, KnowsVersionAndDevices) {
  FakeCuda fake;
  fake.SetMachine(/*devices=*/4, /*driver_version=*/13010, kGigabyte);
  const auto driver = CudaDriver::Load(fake.library());
  ASSERT_TRUE(driver.ok()) << driver.status();
  EXPECT_EQ((*driver)->version(), 13010);
  EXPECT_EQ((*driver)->num_devices(), 4);
}

TEST(CudaDriver, RefusesAnOlderDriver) {
  FakeCuda fake;
  fake.SetMachine(/*devices=*/1, /*driver_version=*/12040, kGigabyte);
  EXPECT_EQ(CudaDriver::Load(fake.library()).status(),
            absl::FailedPreconditionError(
                "The CUDA driver is of version 12.4; it must be of 13.0 or "
                "later."));
}

TEST(CudaDriver, RefusesAMachineWithoutADevice) {
  FakeCuda fake;
  fake.SetMachine(/*devices=*/0, /*driver_version=*/13000, kGigabyte);
  EXPECT_EQ(CudaDriver::Load(fake.library()).status(),
            absl::FailedPreconditionError(
                "The CUDA driver finds no device on this machine."));
}

TEST(CudaDriver, AnErrorHasItsCallAndDevice) {
  FakeCuda fake;
  const auto driver = CudaDriver::Load(fake.library());
  ASSERT_TRUE(driver.ok()) << driver.status();
  EXPECT_TRUE((*driver)->Check(0, "cuMemFree", "device 0").ok());
  EXPECT_EQ((*driver)->Check(700, "cuStreamQuery", "device 3"),
            absl::InternalError("cuStreamQuery on device 3: "
                                "CUDA_ERROR_ILLEGAL_ADDRESS (700), an illegal "
                                "memory access"));
  EXPECT_EQ((*driver)->Check(2, "cuMemAlloc", "device 0"),
            absl::ResourceExhaustedError(
                "cuMemAlloc on device 0: CUDA_ERROR_OUT_OF_MEMORY (2)"));
  EXPECT_EQ((*driver)->Check(12345, "cuMemAlloc", "device 0"),
            absl::InternalError("cuMemAlloc on device 0: error (12345)"));
}

TEST(CudaDriver, AFailureOfAnyCallOfItsStartIsItsStatus) {
  for (const char* call : {"cuInit", "cuDeviceGetCount"}) {
    FakeCuda fake;
    fake.Fail(call, /*nth=*/1, /*code=*/700);
    EXPECT_THAT(
        std::string(CudaDriver::Load(fake.library()).status().message()),
        HasSubstr(std::string(call) + " on this machine: "));
  }
}

}  // namespace
}  // namespace lockstep
