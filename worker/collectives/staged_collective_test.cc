// Tensors of the host over a fake NCCL and fake devices, one a rank: sums,
// parts, and that no rank's memory waits for another rank's calls.
#include "worker/collectives/staged_collective.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/testing/device/fake_cuda.h"
#include "worker/collectives/nccl_collective.h"
#include "worker/collectives/nccl_library.h"
#include "worker/collectives/self_test.h"
#include "worker/device/cuda_device.h"
#include "worker/device/cuda_driver.h"
#include "worker/device/cuda_stream.h"

namespace lockstep {
namespace {

using ::testing::Each;

constexpr int kRanks = 4;
constexpr absl::Duration kTimeout = absl::Seconds(60);

template <typename T>
T Value(absl::StatusOr<T> result) {
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

class StagedCollectiveTest : public ::testing::Test {
 protected:
  StagedCollectiveTest() {
    fake_.SetMachine(kRanks, /*driver_version=*/13000, 1 << 28);
  }

  // On a thread of each rank, with a device of its own.
  void OnAll(const std::function<void(StagedCollective*)>& run) {
    const auto nccl = Value(NcclLibrary::Load(fake_.library()));
    const auto driver = Value(CudaDriver::Load(fake_.library()));
    const NcclApi::UniqueId id = Value(NcclCollective::NewId(nccl.get()));
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto device = Value(CudaDevice::Open(driver.get(), rank));
        const auto stream = Value(CudaStream::Create(device.get()));
        NcclCollective on_device(nccl.get(), stream.get(),
                                 {.rank = rank, .size = kRanks});
        const absl::Status joined = on_device.Join(id, kTimeout);
        ASSERT_TRUE(joined.ok()) << joined;
        StagedCollective staged(&on_device, stream.get());
        run(&staged);
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }

  FakeCuda fake_;
};

// Tensors grow and so are allocated anew while other ranks are ahead, and wait
// in the next call for the one that does.
TEST_F(StagedCollectiveTest, RanksThatAllocateHoldUpNone) {
  fake_.Delay(/*seed=*/5, /*most_us=*/300);
  OnAll([](StagedCollective* collective) {
    const int rank = collective->rank();
    for (int round = 0; round < 60; ++round) {
      std::vector<float> sum(1 + round * 7, rank + round);
      ASSERT_TRUE(collective->AllReduceSum(absl::MakeSpan(sum)).ok());
      EXPECT_THAT(sum, Each(kRanks * round + kRanks * (kRanks - 1) / 2));
      const size_t count = round % 3;  // also none
      std::vector<float> all(kRanks * count), own(count, rank);
      ASSERT_TRUE(collective->AllGather(own, absl::MakeSpan(all)).ok());
      for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i / count);
    }
  });
  EXPECT_EQ(fake_.alive(), 0);
}

TEST_F(StagedCollectiveTest, PassesTheSelfTest) {
  fake_.Delay(/*seed=*/6, /*most_us=*/300);
  OnAll([](StagedCollective* collective) {
    const absl::Status status = TestCollective(collective, kTimeout);
    EXPECT_TRUE(status.ok()) << status;
  });
}

TEST_F(StagedCollectiveTest, ARankThatDoesNotComeEndsACallAndLeavesTheTensor) {
  OnAll([](StagedCollective* collective) {
    if (collective->rank() == 2) return;
    collective->SetTimeout(absl::Milliseconds(50));
    std::vector<float> data(9, 7);
    const absl::Status late = collective->AllReduceSum(absl::MakeSpan(data));
    EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << late;
    EXPECT_THAT(data, Each(7));
  });
}

}  // namespace
}  // namespace lockstep
