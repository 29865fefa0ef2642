#include "worker/cuda_engine/cuda_rank.h"

#include <absl/status/status.h>
#include <absl/synchronization/notification.h>
#include <absl/time/time.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

Shard ShardOf(const ModelFiles& model, int size = 1, int rank = 0) {
  const auto shard =
      MakeShard(model.config, model.row_parallel_blocks, rank, size);
  EXPECT_TRUE(shard.ok()) << shard.status();
  return *shard;
}

CudaRank::Libraries Libraries(TestGpu* gpu) {
  return {.cuda = gpu->cuda_library(), .nccl = gpu->nccl_library()};
}

std::unique_ptr<GpuRank> Open(TestGpu* gpu, int ordinal = 0) {
  auto rank = CudaRank::Open(ordinal, Libraries(gpu));
  EXPECT_TRUE(rank.ok()) << rank.status();
  return *std::move(rank);
}

// A step of one sequence of one token.
struct OneTokenPlan {
  OneTokenPlan() {
    auto request = std::make_shared<v1::AddRequest>();
    request->add_prompt_token_ids(3);
    sequence = std::make_unique<Sequence>(SequenceId{1, 0}, request);
    sequence->mutable_pages() = {5};
    plan.spans.push_back(
        {.sequence = sequence.get(), .begin = 0, .count = 1, .samples = true});
    plan.num_tokens = plan.num_logits_rows = 1;
  }

  std::unique_ptr<Sequence> sequence;
  StepPlan plan;
};

void OnRanks(int size, const std::function<void(int rank)>& run) {
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(run, rank);
  for (std::thread& rank : ranks) rank.join();
}

TEST(CudaRank, SaysThatThereIsNoDriver) {
  EXPECT_EQ(CudaRank::Open(0, {.cuda = "libcuda_of_nobody.so", .nccl = ""})
                .status()
                .code(),
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
  tiny.head_dim = 512;
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
  const OneTokenPlan step;
  StepResult result;
  absl::Status status;
  std::thread([&] { status = (*engine)->Execute(step.plan, &result); }).join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(result.spans.size(), 1);
}

// Every rank on a thread and a device of its own, from the id to a step. Rank
// 0's id goes through the rendezvous: see rank_collective_test.
TEST(CudaRank, RanksMeetByTheIdOfRankZeroAndStepTogether) {
  constexpr int kRanks = 2;
  TestGpu gpu(kRanks);
  const auto last = CudaRank::Open(kRanks - 1, Libraries(&gpu));
  if (!last.ok()) GTEST_SKIP() << last.status();
  if (gpu.fake() != nullptr) gpu.fake()->Delay(/*seed=*/3, /*most_us=*/100);
  const ModelFiles model = Write(TinyModel());
  absl::Notification has_id;
  std::string id;
  std::vector<uint32_t> tokens(kRanks);
  OnRanks(kRanks, [&](int index) {
    const auto rank = Open(&gpu, index);
    const auto own = rank->OpenCollective({.rank = index, .size = kRanks});
    ASSERT_TRUE(own.ok()) << own.status();
    EXPECT_EQ(own->empty(), index > 0);
    if (index == 0) {
      id = *own;
      has_id.Notify();
    }
    has_id.WaitForNotification();
    const absl::Status met = rank->MeetRanks(id, absl::Seconds(60));
    ASSERT_TRUE(met.ok()) << met;
    kernels::ThreadPool pool({.num_threads = 1});
    auto engine =
        rank->MakeEngine(model, ShardOf(model, kRanks, index), kOptions, &pool);
    ASSERT_TRUE(engine.ok()) << engine.status();
    OneTokenPlan step;
    StepResult result;
    result.spans.resize(1);
    const absl::Status status = (*engine)->Execute(step.plan, &result);
    EXPECT_TRUE(status.ok()) << status;
    tokens[index] = result.spans[0].token;
    EXPECT_GT(rank->collective()->num_all_reduces(), 3);
    rank->CloseCollective();
  });
  EXPECT_EQ(tokens[0], tokens[1]);
}

TEST(CudaRank, ARankThatDoesNotComeEndsTheMeetingInTime) {
  TestGpu gpu(/*devices=*/2);
  if (gpu.fake() == nullptr) GTEST_SKIP() << "there may be one GPU";
  const auto rank = Open(&gpu);
  const auto id = rank->OpenCollective({.rank = 0, .size = 2});
  ASSERT_TRUE(id.ok()) << id.status();
  const absl::Status met = rank->MeetRanks(*id, absl::Milliseconds(50));
  EXPECT_EQ(met.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(met.message()),
              HasSubstr("ncclCommInitRankConfig of rank 0 on device 0"));
}

TEST(CudaRank, RefusesWhatIsNoIdAndAMachineWithoutNccl) {
  TestGpu gpu;
  const auto rank = Open(&gpu);
  auto alone = CudaRank::Open(
      0, {.cuda = gpu.cuda_library(), .nccl = "libnccl_of_nobody.so"});
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ((*alone)->OpenCollective({.rank = 0, .size = 2}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  if (gpu.fake() == nullptr) GTEST_SKIP() << "there may be no NCCL";
  ASSERT_TRUE(rank->OpenCollective({.rank = 1, .size = 2}).ok());
  EXPECT_EQ(rank->MeetRanks("short", absl::Seconds(1)),
            absl::InvalidArgumentError(
                "rank 0's id of NCCL has 5 bytes; it has 128."));
}

TEST(CudaRank, RefusesAGroupThatItsKernelsCanNotCut) {
  TestGpu gpu;
  const auto rank = Open(&gpu);
  TinyModel tiny;
  tiny.num_heads = 9;
  tiny.num_kv_heads = 3;
  const ModelFiles model = Write(tiny);
  EXPECT_EQ(rank->KvMemoryBytes(model, ShardOf(model, 2), kOptions, 0.9)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
