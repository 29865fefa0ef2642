#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/threads/thread_pool.h"
#include "tests/testing/device/test_gpu.h"
#include "tests/testing/engine/hand_planned_engine.h"
#include "worker/collectives/nccl_collective.h"
#include "worker/collectives/nccl_library.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/cuda_engine/cuda_engine.h"
#include "worker/device/cuda_device.h"
#include "worker/device/cuda_driver.h"
#include "worker/device/cuda_stream.h"
#include "worker/engine/engine.h"
#include "worker/weights/model_files.h"

namespace lockstep::testing {

// The engines of all ranks of a group on GPUs, a device each, ranks as threads
// with NCCL between them, behind the interface of one. Every rank must come to
// the same tokens.
//
//   TestGpu gpu(/*devices=*/2);
//   auto group = CudaGroup::Create(&gpu, model, /*size=*/2, {…});
//   (*group)->Execute(plan, &result);
class CudaGroup final : public Engine {
 public:
  // FAILED_PRECONDITION where the machine has fewer devices. `gpu` and `model`
  // must outlive the group.
  static absl::StatusOr<std::unique_ptr<CudaGroup>> Create(
      TestGpu* gpu, const ModelFiles& model, int size,
      const CudaEngine::Options& options, bool expert_parallel = false);

  int max_steps_in_flight() const override { return 2; }
  absl::Status Launch(const StepPlan& plan) override;
  absl::Status Retire(StepResult* result) override;

  CudaEngine& engine(int rank) { return *ranks_[rank].engine; }

 private:
  // In the order in which they need each other.
  struct Rank {
    std::unique_ptr<CudaDevice> device;
    std::unique_ptr<CudaStream> stream;
    std::unique_ptr<NcclCollective> collective;  // of several ranks
    std::unique_ptr<CudaEngine> engine;
    StepResult result;
  };

  CudaGroup(int size, bool expert_parallel)
      : expert_parallel_(expert_parallel), ranks_(size) {}

  absl::Status Open(TestGpu* gpu, const ModelFiles& model,
                    const CudaEngine::Options& options);
  absl::Status OpenRank(int rank, const ModelFiles& model,
                        const CudaEngine::Options& options,
                        const NcclApi::UniqueId& id);
  // Once for each rank, all at the same time; returns an error of one.
  absl::Status Run(const std::function<absl::Status(int rank)>& fn);

  const bool expert_parallel_;
  std::unique_ptr<CudaDriver> driver_;
  std::unique_ptr<NcclLibrary> nccl_;  // of several ranks
  kernels::ThreadPool pool_{{.num_threads = 1}};
  std::vector<Rank> ranks_;
};

bool HasDevices(const TestGpu& gpu, int count);

// Sees the logits of rank 0. `group`, of so many pages, must outlive it.
HandPlannedEngine PlanByHand(CudaGroup* group,
                             const HandPlannedEngine::Pages& pages);

// Ids below 500, other ones for each seed.
std::vector<uint32_t> SomeTokens(int count, int seed);

}  // namespace lockstep::testing
