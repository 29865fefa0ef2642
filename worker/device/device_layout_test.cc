#include "worker/device/device_layout.h"

#include <absl/status/status.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "tests/testing/device/fake_cuda.h"
#include "worker/device/cuda_device.h"
#include "worker/device/cuda_driver.h"
#include "worker/device/device_arena.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class DeviceLayoutTest : public testing::Test {
 protected:
  void SetUp() override {
    auto driver = CudaDriver::Load(fake_.library());
    ASSERT_TRUE(driver.ok()) << driver.status();
    driver_ = *std::move(driver);
    auto device = CudaDevice::Open(driver_.get(), 0);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }

  FakeCuda fake_;
  std::unique_ptr<CudaDriver> driver_;
  std::unique_ptr<CudaDevice> device_;
};

TEST_F(DeviceLayoutTest, PlacesPiecesBehindEachOther) {
  float* floats = nullptr;
  const uint8_t* bytes = nullptr;
  const double* none = nullptr;
  DeviceLayout layout;
  layout.Add("floats", 65, &floats);
  layout.Add("none", 0, &none);
  layout.Add("bytes", 3, &bytes);
  EXPECT_EQ(layout.bytes(), 512 + 0 + 256);
  const auto arena = DeviceArena::Create(device_.get(), "test", layout.bytes());
  ASSERT_TRUE(arena.ok()) << arena.status();
  ASSERT_TRUE(layout.PlaceIn(arena->get()).ok());
  EXPECT_EQ(bytes, reinterpret_cast<const uint8_t*>(floats) + 512);
}

TEST_F(DeviceLayoutTest, NamesThePieceThatDoesNotFit) {
  float* floats = nullptr;
  DeviceLayout layout;
  layout.Add("the floats", 65, &floats);
  const auto arena = DeviceArena::Create(device_.get(), "test", 256);
  ASSERT_TRUE(arena.ok()) << arena.status();
  const absl::Status status = layout.PlaceIn(arena->get());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the floats takes 260"));
  EXPECT_EQ(floats, nullptr);
}

}  // namespace
}  // namespace lockstep
