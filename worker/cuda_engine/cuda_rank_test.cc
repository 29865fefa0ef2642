#include "worker/cuda_engine/cuda_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "kernels/threads/thread_pool.h"
#include "proto/group.pb.h"
#include "tests/testing/device/test_gpu.h"
#include "tests/testing/tiny_model.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/model_spec/shard.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::TinyModel;

constexpr CudaEngineOptions kOptions = {.num_pages = 8,
                                        .max_step_tokens = 64,
                                        .max_sequences = 4,
                                        .max_logits_rows = 4};

ModelFiles Write(const TinyModel& tiny) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = ::testing::TempDir() + test->name();
  testing::WriteHuggingFaceFolder(tiny, folder);
  auto model = OpenModel(folder);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

Shard ShardOf(const ModelFiles& model, int size = 1) {
  const auto shard =
      MakeShard(model.config, model.row_parallel_blocks, 0, size);
  EXPECT_TRUE(shard.ok()) << shard.status();
  return *shard;
}

std::unique_ptr<GpuRank> Open(TestGpu* gpu) {
  auto rank = CudaRank::Open(0, gpu->cuda_library());
  EXPECT_TRUE(rank.ok()) << rank.status();
  return *std::move(rank);
}

TEST(CudaRank, SaysThatThereIsNoDriver) {
  EXPECT_EQ(CudaRank::Open(0, "libcuda_of_nobody.so").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(CudaRank, LeavesToPagesWhatWeightsAndWorkspacesDoNotTake) {
  TestGpu gpu;
  const auto rank = Open(&gpu);
  const ModelFiles model = Write(TinyModel());
  const Shard shard = ShardOf(model);
  const auto half = rank->KvMemoryBytes(model, shard, kOptions, 0.5);
  const auto more = rank->KvMemoryBytes(model, shard, kOptions, 0.75);
  ASSERT_TRUE(half.ok()) << half.status();
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_LT(*half, *more);
  EXPECT_EQ(rank->PageBytes(model, shard, kOptions),
            2 * 2 * 2 * 16 * 16 * sizeof(float));
  if (gpu.fake() == nullptr) return;
  gpu.fake()->SetMachine(1, 13000, 1 << 20);
  const auto none = rank->KvMemoryBytes(model, shard, kOptions, 0.9);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("No device memory is left for KV pages"));
}

TEST(CudaRank, RefusesWhatItCanNotCompute) {
  TestGpu gpu;
  const auto rank = Open(&gpu);
  TinyModel tiny;
  tiny.architecture = "olmo2";
  const ModelFiles model = Write(tiny);
  EXPECT_EQ(
      rank->KvMemoryBytes(model, ShardOf(model), kOptions, 0.9).status().code(),
      absl::StatusCode::kUnimplemented);
}

// Steps are made by a thread of their own.
TEST(CudaRank, ItsEngineStepsOnAnyThread) {
  TestGpu gpu;
  const auto rank = Open(&gpu);
  const ModelFiles model = Write(TinyModel());
  kernels::ThreadPool pool({.num_threads = 1});
  auto engine = rank->MakeEngine(model, ShardOf(model), kOptions, &pool);
  ASSERT_TRUE(engine.ok()) << engine.status();
  auto request = std::make_shared<v1::AddRequest>();
  request->add_prompt_token_ids(3);
  Sequence sequence({1, 0}, request);
  sequence.mutable_pages() = {5};
  StepPlan plan;
  plan.spans.push_back(
      {.sequence = &sequence, .begin = 0, .count = 1, .samples = true});
  plan.num_tokens = plan.num_logits_rows = 1;
  StepResult result;
  absl::Status status;
  std::thread([&] { status = (*engine)->Execute(plan, &result); }).join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(result.spans.size(), 1);
}

TEST(CudaRank, IsAloneInItsGroup) {
  TestGpu gpu;
  const auto rank = Open(&gpu);
  const ModelFiles model = Write(TinyModel());
  const auto engine =
      rank->MakeEngine(model, ShardOf(model, 2), kOptions, nullptr);
  EXPECT_EQ(engine.status(),
            absl::UnimplementedError("--tensor_parallel_size is 2; on GPUs a "
                                     "group is of one rank so far."));
}

}  // namespace
}  // namespace lockstep
