#include "worker/runtime/rank_device.h"

#include <absl/status/status.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/tiny_model.h"
#include "worker/model_spec/shard.h"
#include "worker/runtime/numerics.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

constexpr Numerics kNumerics = {kernels::Arithmetic::kFast,
                                kernels::KvType::kF16};

absl::StatusOr<RankDevice> Choose(DeviceKind kind) {
  const std::string folder = ::testing::TempDir() + "model";
  testing::WriteHuggingFaceFolder(testing::TinyModel(), folder);
  const auto model = OpenModel(folder);
  EXPECT_TRUE(model.ok()) << model.status();
  const auto shard = MakeShard(model->config, model->row_parallel_blocks, 0, 1);
  return ChooseDevice({.kind = kind}, /*ordinal=*/0, *model, *shard, kNumerics,
                      {});
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

}  // namespace
}  // namespace lockstep
