#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/threads/thread_pool.h"
#include "worker/collectives/collective.h"
#include "worker/cuda_engine/cuda_engine_options.h"
#include "worker/engine/engine.h"
#include "worker/model_spec/shard.h"
#include "worker/weights/model_files.h"

namespace lockstep {

// What a rank computes with on a GPU, from the device to the engine. An
// interface, as programs are built with kernels for GPUs or without.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto gpu, OpenGpuRank(/*ordinal=*/0));
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       int64_t bytes, gpu->KvMemoryBytes(model, shard, options, 0.9));
//   …pages…
//   LOCKSTEP_ASSIGN_OR_RETURN(id, gpu->OpenCollective({…}));  // of several
//   …rank 0's id goes to the others…                          // ranks
//   LOCKSTEP_RETURN_IF_ERROR(gpu->MeetRanks(id, timeout));
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       auto engine, gpu->MakeEngine(model, shard, options, pool));
//
// One thread at a time, but for the collective's Abort. Outlives its engine.
class GpuRank {
 public:
  virtual ~GpuRank() = default;

  virtual const std::string& name() const = 0;  // "device 0 (NVIDIA H200)"

  // Of one KV page of the rank, all layers.
  virtual int64_t PageBytes(const ModelFiles& model, const Shard& shard,
                            const CudaEngineOptions& options) const = 0;

  // What is left for KV pages where `utilization` of the device's memory may be
  // in use; num_pages is not looked at. UNIMPLEMENTED where the model can not
  // be computed there, or not by so many ranks, RESOURCE_EXHAUSTED where
  // nothing is left.
  virtual absl::StatusOr<int64_t> KvMemoryBytes(
      const ModelFiles& model, const Shard& shard,
      const CudaEngineOptions& options, double utilization) const = 0;

  struct CollectiveOptions {
    int rank = 0;
    int size = 1;
    // Called once, on a thread that CloseCollective and the end of the rank
    // wait for, when the way to the others breaks between two calls.
    std::function<void(const absl::Status&)> failed = nullptr;
  };

  // This rank's end of what ranks with a GPU each exchange tensors by, NCCL's.
  // Returns rank 0's id, by which all of them meet, and nothing on others.
  virtual absl::StatusOr<std::string> OpenCollective(
      const CollectiveOptions& options) = 0;

  // After OpenCollective: waits until all ranks have joined, each with rank 0's
  // id, and exchanges known values with them, each call with this limit: see
  // TestCollective. Errors name the call and this rank.
  virtual absl::Status MeetRanks(const std::string& id,
                                 absl::Duration timeout) = 0;

  // No call comes any more: `failed` is not called once this has returned.
  virtual void CloseCollective() = 0;

  // After OpenCollective; of the device's memory.
  virtual Collective* collective() = 0;

  // `model` and `pool` must outlive the engine. Minutes, for a large model. Of
  // several ranks after MeetRanks.
  virtual absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(
      const ModelFiles& model, const Shard& shard,
      const CudaEngineOptions& options, kernels::ThreadPool* pool) = 0;
};

// FAILED_PRECONDITION, in one sentence, where this program was built without
// kernels for GPUs, or there is no driver or device.
absl::StatusOr<std::unique_ptr<GpuRank>> OpenGpuRank(int ordinal);

}  // namespace lockstep
