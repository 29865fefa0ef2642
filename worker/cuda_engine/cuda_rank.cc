#include "worker/cuda_engine/cuda_rank.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include "common/status_macros.h"
#include "worker/cuda_engine/cuda_engine.h"
#include "worker/cuda_engine/cuda_model.h"
#include "worker/cuda_engine/device_weights.h"
#include "worker/device/device_budget.h"

namespace lockstep {
namespace {

absl::Status CheckAlone(const Shard& shard) {
  if (shard.size == 1) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("--tensor_parallel_size is ", shard.size,
                   "; on GPUs a group is of one rank so far."));
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuRank>> CudaRank::Open(
    int ordinal, const std::string& library) {
  std::unique_ptr<CudaRank> rank(new CudaRank());
  LOCKSTEP_ASSIGN_OR_RETURN(rank->driver_, CudaDriver::Load(library));
  LOCKSTEP_ASSIGN_OR_RETURN(rank->device_,
                            CudaDevice::Open(rank->driver_.get(), ordinal));
  LOCKSTEP_ASSIGN_OR_RETURN(rank->stream_,
                            CudaStream::Create(rank->device_.get()));
  return rank;
}

int64_t CudaRank::PageBytes(const ModelFiles& model, const Shard& shard,
                            const CudaEngineOptions& options) const {
  return CudaEngine::PageBytes(model.config, shard, options.page_size,
                               options.arithmetic);
}

absl::StatusOr<int64_t> CudaRank::KvMemoryBytes(
    const ModelFiles& model, const Shard& shard,
    const CudaEngineOptions& options, double utilization) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckCudaModel(model.config));
  LOCKSTEP_RETURN_IF_ERROR(CheckAlone(shard));
  LOCKSTEP_ASSIGN_OR_RETURN(const CudaDevice::Memory memory,
                            device_->GetMemory());
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int64_t weight_bytes,
      DeviceWeightBytes(*model.tensors, model.config, shard));
  // For as many positions as the model has, since the pages are not known yet.
  CudaEngineOptions largest = options;
  largest.num_pages = model.config.max_context;
  return BytesForKvPages({.free_bytes = memory.free_bytes,
                          .total_bytes = memory.total_bytes,
                          .utilization = utilization,
                          .weight_bytes = weight_bytes,
                          .workspace_bytes = CudaEngine::WorkspaceBytes(
                              model.config, shard, largest)});
}

absl::StatusOr<std::unique_ptr<Engine>> CudaRank::MakeEngine(
    const ModelFiles& model, const Shard& shard,
    const CudaEngineOptions& options, kernels::ThreadPool* pool) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAlone(shard));
  LOCKSTEP_RETURN_IF_ERROR(device_->MakeCurrent());
  return CudaEngine::Create(model, shard, options, pool, stream_.get(),
                            /*collective=*/nullptr);
}

}  // namespace lockstep
