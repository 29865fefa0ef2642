#include "tests/testing/cuda/cuda_group.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "common/status_macros.h"
#include "worker/model_spec/shard.h"

namespace lockstep::testing {

absl::StatusOr<std::unique_ptr<CudaGroup>> CudaGroup::Create(
    TestGpu* gpu, const ModelFiles& model, int size,
    const CudaEngine::Options& options, bool expert_parallel) {
  std::unique_ptr<CudaGroup> group(new CudaGroup(size, expert_parallel));
  LOCKSTEP_RETURN_IF_ERROR(group->Open(gpu, model, options));
  return group;
}

absl::Status CudaGroup::Open(TestGpu* gpu, const ModelFiles& model,
                             const CudaEngine::Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(driver_, CudaDriver::Load(gpu->cuda_library()));
  const int size = static_cast<int>(ranks_.size());
  if (driver_->num_devices() < size) {
    return absl::FailedPreconditionError(
        absl::StrCat("This machine has ", driver_->num_devices(),
                     " devices, the group ", size, " ranks."));
  }
  NcclApi::UniqueId id;
  if (size > 1) {
    LOCKSTEP_ASSIGN_OR_RETURN(nccl_, NcclLibrary::Load(gpu->nccl_library()));
    LOCKSTEP_ASSIGN_OR_RETURN(id, NcclCollective::NewId(nccl_.get()));
  }
  return Run([&](int rank) { return OpenRank(rank, model, options, id); });
}

absl::Status CudaGroup::OpenRank(int index, const ModelFiles& model,
                                 const CudaEngine::Options& options,
                                 const NcclApi::UniqueId& id) {
  const int size = static_cast<int>(ranks_.size());
  Rank& rank = ranks_[index];
  LOCKSTEP_ASSIGN_OR_RETURN(rank.device,
                            CudaDevice::Open(driver_.get(), index));
  LOCKSTEP_ASSIGN_OR_RETURN(rank.stream, CudaStream::Create(rank.device.get()));
  if (size > 1) {
    rank.collective = std::make_unique<NcclCollective>(
        nccl_.get(), rank.stream.get(),
        NcclCollective::Options{.rank = index, .size = size});
    LOCKSTEP_RETURN_IF_ERROR(
        rank.collective->Join(id, absl::InfiniteDuration()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Shard shard,
                            MakeShard(model.config, model.row_parallel_blocks,
                                      index, size, expert_parallel_));
  LOCKSTEP_ASSIGN_OR_RETURN(
      rank.engine,
      CudaEngine::Create(model, shard, options, &pool_, rank.stream.get(),
                         rank.collective.get()));
  return absl::OkStatus();
}

absl::Status CudaGroup::Launch(const StepPlan& plan) {
  return Run([&](int rank) { return ranks_[rank].engine->Launch(plan); });
}

absl::Status CudaGroup::Retire(StepResult* result) {
  LOCKSTEP_RETURN_IF_ERROR(Run([&](int rank) {
    return ranks_[rank].engine->Retire(&ranks_[rank].result);
  }));
  *result = ranks_[0].result;
  for (const Rank& rank : ranks_) {
    for (size_t i = 0; i < result->spans.size(); ++i) {
      const SpanResult& found = rank.result.spans[i];
      const SpanResult& expected = result->spans[i];
      if (found.is_finite != expected.is_finite) {
        return absl::InternalError(
            absl::StrCat("only some ranks have a number for span ", i, "."));
      }
      if (!found.is_finite || found.token == expected.token) continue;
      return absl::InternalError(
          absl::StrCat("ranks sampled different tokens for span ", i, "."));
    }
  }
  return absl::OkStatus();
}

absl::Status CudaGroup::Run(const std::function<absl::Status(int rank)>& fn) {
  if (ranks_.size() == 1) return fn(0);
  absl::Mutex mutex;
  absl::Status first_error;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    threads.emplace_back([&, i] {
      const absl::Status status = fn(static_cast<int>(i));
      if (status.ok()) return;
      absl::MutexLock lock(&mutex);
      if (!first_error.ok()) return;
      first_error = status;
      for (Rank& rank : ranks_) {
        if (rank.collective != nullptr)
          rank.collective->Abort(status.message());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return first_error;
}

bool HasDevices(const TestGpu& gpu, int count) {
  const auto driver = CudaDriver::Load(gpu.cuda_library());
  EXPECT_TRUE(driver.ok()) << driver.status();
  return driver.ok() && (*driver)->num_devices() >= count;
}

HandPlannedEngine PlanByHand(CudaGroup* group,
                             const HandPlannedEngine::Pages& pages) {
  return HandPlannedEngine(
      group,
      [group](CudaEngine::LogitsObserver observer) {
        group->engine(0).set_logits_observer(std::move(observer));
      },
      pages);
}

std::vector<uint32_t> SomeTokens(int count, int seed) {
  std::vector<uint32_t> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back((i * 37 + seed) % 500);
  return tokens;
}

}  // namespace lockstep::testing
