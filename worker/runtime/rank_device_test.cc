#include "worker/runtime/rank_device.h"

#include <absl/status/status.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/testing/device/fake_gpu_rank.h"
#include "tests/testing/tiny_model.h"
#include "worker/collectives/collective_kind.h"
#include "worker/model_spec/shard.h"
#include "worker/runtime/numerics.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

constexpr Numerics kNumerics = {kernels::Arithmetic::kFast,
                                kernels::KvType::kF16};

absl::StatusOr<RankDevice> ChooseFrom(const DeviceChoice& choice,
                                      int size = 1) {
  const std::string folder = ::testing::TempDir() + "model";
  testing::WriteHuggingFaceFolder(testing::TinyModel(), folder);
  const auto model = OpenModel(folder);
  EXPECT_TRUE(model.ok()) << model.status();
  const auto shard =
      MakeShard(model->config, model->row_parallel_blocks, 0, size);
  EXPECT_TRUE(shard.ok()) << shard.status();
  return ChooseDevice(choice, /*ordinal=*/0, *model, *shard, kNumerics, {});
}

absl::StatusOr<RankDevice> Choose(DeviceKind kind) {
  return ChooseFrom({.kind = kind});
}

// Without kernels for GPUs, or with them and no driver.
TEST(RankDevice, IsTheCpuWhereThereIsNoGpu) {
  if (OpenGpuRank(0).ok()) GTEST_SKIP() << "there is a GPU";
  for (DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kAuto}) {
    const auto device = Choose(kind);
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ(device->gpu, nullptr);
    EXPECT_EQ(device->numerics.kv_type, kNumerics.kv_type);
  }
}

TEST(RankDevice, SaysWhyThereIsNoGpuWhereOneIsAskedFor) {
  const auto gpu = OpenGpuRank(0);
  if (gpu.ok()) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(Choose(DeviceKind::kCuda).status(),
            absl::FailedPreconditionError("--device is cuda. " +
                                          std::string(gpu.status().message())));
}

TEST(RankDevice, RanksOnGpusTakeNoCollectiveOfTheCpus) {
  DeviceChoice choice = {.kind = DeviceKind::kCuda};
  choice.open = [](int) -> absl::StatusOr<std::unique_ptr<GpuRank>> {
    return std::make_unique<testing::FakeGpuRank>("id");
  };
  const auto taken = ChooseFrom(choice, /*size=*/2);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(*CollectiveOn(*taken, 2, CollectiveKind::kSharedMemory),
            CollectiveKind::kNccl);
  choice.takes_nccl = false;
  EXPECT_TRUE(ChooseFrom(choice, /*size=*/1).ok());
  EXPECT_EQ(ChooseFrom(choice, /*size=*/2).status(),
            absl::InvalidArgumentError(
                "--device is cuda. --collective is one of the CPU's; between "
                "GPUs it must be nccl or auto."));
  choice.kind = DeviceKind::kAuto;
  const auto cpu = ChooseFrom(choice, /*size=*/2);
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_EQ(cpu->gpu, nullptr);
}

TEST(RankDevice, AGpuHasTwoStepsInFlightAndTheCpuOne) {
  RankDevice gpu;
  const RankDevice cpu;
  gpu.gpu = std::make_unique<testing::FakeGpuRank>("id");
  EXPECT_EQ(*StepsInFlightOn(gpu, {}), 2);
  EXPECT_EQ(*StepsInFlightOn(gpu, {.steps_in_flight = 1}), 1);
  EXPECT_EQ(*StepsInFlightOn(cpu, {}), 1);
  EXPECT_EQ(*StepsInFlightOn(cpu, {.steps_in_flight = 1}), 1);
  EXPECT_EQ(StepsInFlightOn(cpu, {.steps_in_flight = 2}).status(),
            absl::InvalidArgumentError(
                "--steps_in_flight is 2, but the CPU computes one step at a "
                "time; it must be 0 or 1."));
}

TEST(RankDevice, GpusExchangeByNcclAndNobodyElseDoes) {
  const RankDevice cpu;
  EXPECT_EQ(*CollectiveOn(cpu, 2, CollectiveKind::kGloo),
            CollectiveKind::kGloo);
  EXPECT_EQ(CollectiveOn(cpu, 2, CollectiveKind::kNccl).status(),
            absl::InvalidArgumentError(
                "--collective is nccl, but the ranks compute on the CPU; it "
                "must be auto, shared_memory or gloo."));
  EXPECT_EQ(*CollectiveOn(cpu, 1, CollectiveKind::kSingle),
            CollectiveKind::kSingle);
}

}  // namespace
}  // namespace lockstep
