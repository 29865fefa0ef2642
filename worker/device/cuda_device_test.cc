// Devices, streams, events and memory on the fake driver: work runs when the
// device comes to it, and every call may fail.
#include "worker/device/cuda_device.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "common/status_macros.h"
#include "tests/testing/device/fake_cuda.h"
#include "worker/device/cuda_driver.h"
#include "worker/device/cuda_event.h"
#include "worker/device/cuda_stream.h"
#include "worker/device/device_arena.h"
#include "worker/device/pinned_memory.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr int kIllegalAddress = 700;

template <typename T>
T Value(absl::StatusOr<T> result) {
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

class CudaDeviceTest : public testing::Test {
 protected:
  FakeCuda fake_;
  const std::unique_ptr<CudaDriver> driver_ =
      Value(CudaDriver::Load(fake_.library()));
  const std::unique_ptr<CudaDevice> device_ =
      Value(CudaDevice::Open(driver_.get(), 0));
};

TEST_F(CudaDeviceTest, KnowsItself) {
  EXPECT_EQ(device_->name(), "device 0 (Fake GPU)");
  EXPECT_EQ(device_->compute_capability(), 90);
}

TEST_F(CudaDeviceTest, RefusesAnOrdinalThatThereIsNot) {
  for (int ordinal : {-1, 1}) {
    EXPECT_EQ(CudaDevice::Open(driver_.get(), ordinal).status(),
              absl::InvalidArgumentError(
                  "There is no device " + std::to_string(ordinal) +
                  ": this machine has 1, counted from 0."));
  }
}

TEST_F(CudaDeviceTest, WorkRunsInOrderWhileTheHostGoesOn) {
  fake_.Delay(/*seed=*/1, /*most_us=*/300);
  fake_.Hold(true);
  const auto stream = Value(CudaStream::Create(device_.get()));
  const auto arena = Value(DeviceArena::Create(device_.get(), "test", 512));
  const CudaApi::Address a = Value(arena->Take(4, "a"));
  const CudaApi::Address b = Value(arena->Take(4, "b"));
  const auto staged = Value(PinnedMemory::Allocate(device_.get(), 8));
  auto* const host = static_cast<char*>(staged->data());
  std::memcpy(host, "word____", 8);
  ASSERT_TRUE(stream->CopyToDevice(a, host, 4).ok());
  ASSERT_TRUE(stream->CopyOnDevice(b, a, 4).ok());
  ASSERT_TRUE(stream->Fill(b, 'x', 1).ok());
  ASSERT_TRUE(stream->CopyToHost(host + 4, b, 4).ok());
  EXPECT_FALSE(Value(stream->Done()));
  EXPECT_EQ(std::string(host, 8), "word____");
  fake_.Hold(false);
  ASSERT_TRUE(stream->Synchronize().ok());
  EXPECT_TRUE(Value(stream->Done()));
  EXPECT_EQ(std::string(host, 8), "wordxord");
}

TEST_F(CudaDeviceTest, AStreamWaitsForAnEventOfAnother) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    fake_.Delay(seed, /*most_us=*/100);
    const auto copies = Value(CudaStream::Create(device_.get()));
    const auto computes = Value(CudaStream::Create(device_.get()));
    const auto copied = Value(CudaEvent::Create(device_.get()));
    const auto arena = Value(DeviceArena::Create(device_.get(), "test", 1));
    const CudaApi::Address at = Value(arena->Take(1, "byte"));
    EXPECT_TRUE(Value(copied->Happened()));
    char result = 0;
    ASSERT_TRUE(copies->Fill(at, 'a', 1).ok());
    ASSERT_TRUE(copies->Fill(at, 'b', 1).ok());
    ASSERT_TRUE(copied->Record(copies->handle()).ok());
    ASSERT_TRUE(computes->WaitFor(*copied).ok());
    ASSERT_TRUE(computes->CopyToHost(&result, at, 1).ok());
    ASSERT_TRUE(computes->Synchronize().ok());
    EXPECT_EQ(result, 'b') << "seed " << seed;
    EXPECT_TRUE(Value(copied->Happened()));
    ASSERT_TRUE(copied->Synchronize().ok());
  }
}

TEST_F(CudaDeviceTest, AnArenaHandsOutAlignedPiecesUntilItIsUsedUp) {
  const auto arena = Value(DeviceArena::Create(device_.get(), "weights", 600));
  const CudaApi::Address first = Value(arena->Take(1, "q"));
  EXPECT_EQ(Value(arena->Take(256, "k")) - first, DeviceArena::kAlignment);
  EXPECT_EQ(arena->used_bytes(), 512);
  EXPECT_EQ(arena->Take(89, "v").status(),
            absl::ResourceExhaustedError(
                "v takes 89 bytes of the weights on device 0 (Fake GPU), of "
                "which 88 of 600 are left."));
  EXPECT_EQ(Value(arena->Take(88, "v")) - first, 512);
  EXPECT_FALSE(arena->Take(1, "o").ok());
}

TEST_F(CudaDeviceTest, AnArenaThatDoesNotFitSaysWhatIsLeft) {
  fake_.SetMachine(1, 13000, /*memory_bytes=*/1000);
  const auto kept = Value(DeviceArena::Create(device_.get(), "weights", 600));
  EXPECT_EQ(DeviceArena::Create(device_.get(), "KV pages", 401).status(),
            absl::ResourceExhaustedError(
                "The KV pages take 401 bytes on device 0 (Fake GPU), which has "
                "400 of 1000 left."));
  EXPECT_EQ(Value(device_->GetMemory()).free_bytes, 400);
  EXPECT_TRUE(DeviceArena::Create(device_.get(), "nothing", 0).ok());
}

TEST_F(CudaDeviceTest, AnErrorOfTheWorkComesOutOfTheNextCall) {
  const auto stream = Value(CudaStream::Create(device_.get()));
  fake_.Fail("", /*nth=*/1, kIllegalAddress);
  EXPECT_EQ(stream->Synchronize(),
            absl::InternalError("cuStreamSynchronize on device 0 (Fake GPU): "
                                "CUDA_ERROR_ILLEGAL_ADDRESS (700), an illegal "
                                "memory access"));
  EXPECT_EQ(stream->Done().status().code(), absl::StatusCode::kInternal);
}

TEST_F(CudaDeviceTest, KernelsRunInTheOrderOfTheirStream) {
  fake_.Delay(/*seed=*/5, /*most_us=*/300);
  const auto stream = Value(CudaStream::Create(device_.get()));
  const auto arena = Value(DeviceArena::Create(device_.get(), "test", 4));
  const CudaApi::Address address = Value(arena->Take(4, "a"));
  const auto staged = Value(PinnedMemory::Allocate(device_.get(), 8));
  auto* const host = static_cast<char*>(staged->data());
  std::memcpy(host, "word____", 8);
  ASSERT_TRUE(stream->CopyToDevice(address, host, 4).ok());
  const auto kernel = [address] {
    ++*reinterpret_cast<char*>(address);
    return 0;
  };
  ASSERT_EQ(fake_.Launch(stream->handle(), kernel), 0);
  ASSERT_TRUE(stream->CopyToHost(host + 4, address, 4).ok());
  ASSERT_TRUE(stream->Synchronize().ok());
  EXPECT_EQ(std::string(host, 8), "wordxord");
}

// Which may itself wait for what this device is to do: see NcclCollective.
TEST_F(CudaDeviceTest, FreeingMemoryWaitsForNoOtherDevice) {
  fake_.SetMachine(/*devices=*/2, /*driver_version=*/13000, 1 << 20);
  const auto driver = Value(CudaDriver::Load(fake_.library()));
  const auto busy = Value(CudaStream::Create(device_.get()));
  std::promise<void> freed;
  std::future<void> has_freed = freed.get_future();
  bool came = false;
  ASSERT_EQ(fake_.Launch(busy->handle(),
                         [&] {
                           came = has_freed.wait_for(std::chrono::seconds(
                                      20)) == std::future_status::ready;
                           return 0;
                         }),
            0);
  std::thread([&] {
    const auto other = Value(CudaDevice::Open(driver.get(), 1));
    Value(PinnedMemory::Allocate(other.get(), 64)).reset();
    Value(DeviceArena::Create(other.get(), "workspaces", 64)).reset();
  }).join();
  freed.set_value();
  ASSERT_TRUE(busy->Synchronize().ok());
  EXPECT_TRUE(came);
}

TEST_F(CudaDeviceTest, AKernelThatFailsBreaksTheDevice) {
  const auto stream = Value(CudaStream::Create(device_.get()));
  const auto kernel = [] { return kIllegalAddress; };
  EXPECT_EQ(fake_.Launch(stream->handle(), kernel), 0);
  while (stream->Done().ok()) {
  }
  EXPECT_EQ(stream->Synchronize().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(fake_.Launch(stream->handle(), kernel), kIllegalAddress);
}

// All that a step does, on a new device.
absl::Status UseEverything(const CudaDriver* driver) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto device, CudaDevice::Open(driver, 0));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto stream,
                            CudaStream::Create(device.get()));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto event, CudaEvent::Create(device.get()));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto arena,
                            DeviceArena::Create(device.get(), "test", 8));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto staged,
                            PinnedMemory::Allocate(device.get(), 8));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto address, arena->Take(8, "all"));
  std::memset(staged->data(), 0, staged->bytes());
  LOCKSTEP_RETURN_IF_ERROR(stream->CopyToDevice(address, staged->data(), 8));
  LOCKSTEP_RETURN_IF_ERROR(event->Record(stream->handle()));
  LOCKSTEP_RETURN_IF_ERROR(stream->WaitFor(*event));
  LOCKSTEP_RETURN_IF_ERROR(stream->Fill(address, 1, 8));
  LOCKSTEP_RETURN_IF_ERROR(stream->CopyToHost(staged->data(), address, 8));
  LOCKSTEP_RETURN_IF_ERROR(event->Synchronize());
  LOCKSTEP_RETURN_IF_ERROR(event->Happened().status());
  LOCKSTEP_RETURN_IF_ERROR(stream->Synchronize());
  LOCKSTEP_RETURN_IF_ERROR(device->GetMemory().status());
  return stream->Done().status();
}

TEST_F(CudaDeviceTest, AFailureOfAnyCallIsAStatusAndLeavesNothingBehind) {
  const int alive = fake_.alive();
  fake_.Delay(/*seed=*/3, /*most_us=*/20);
  int failed = 0;
  for (int nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    fake_.Fail("", nth, kIllegalAddress);
    const absl::Status status = UseEverything(driver_.get());
    fake_.Fail("", 0, 0);
    EXPECT_EQ(fake_.alive(), alive);
    if (status.ok()) break;
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr(" on device 0"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("(700)"));
    ++failed;
  }
  EXPECT_GE(failed, 18);
}

}  // namespace
}  // namespace lockstep
