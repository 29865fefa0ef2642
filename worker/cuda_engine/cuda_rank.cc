#include "worker/cuda_engine/cuda_rank.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <cstring>

#include "common/status_macros.h"
#include "worker/collectives/self_test.h"
#include "worker/collectives/staged_collective.h"
#include "worker/cuda_engine/cuda_engine.h"
#include "worker/cuda_engine/cuda_model.h"
#include "worker/cuda_engine/weights/device_weights.h"
#include "worker/device/device_budget.h"

namespace lockstep {
namespace {

absl::StatusOr<NcclApi::UniqueId> ParseId(const std::string& id) {
  NcclApi::UniqueId parsed;
  if (id.size() != sizeof(parsed.bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("rank 0's id of NCCL has ",
                                                   id.size(), " bytes; it has ",
                                                   sizeof(parsed.bytes), "."));
  }
  std::memcpy(parsed.bytes, id.data(), id.size());
  return parsed;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuRank>> CudaRank::Open(
    int ordinal, const Libraries& libraries) {
  std::unique_ptr<CudaRank> rank(new CudaRank(libraries));
  LOCKSTEP_ASSIGN_OR_RETURN(rank->driver_, CudaDriver::Load(libraries.cuda));
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
  LOCKSTEP_RETURN_IF_ERROR(CheckCudaShards(model.config, shard.size));
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

absl::StatusOr<std::string> CudaRank::OpenCollective(
    const CollectiveOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(nccl_, NcclLibrary::Load(libraries_.nccl));
  collective_ = std::make_unique<NcclCollective>(
      nccl_.get(), stream_.get(),
      NcclCollective::Options{.rank = options.rank,
                              .size = options.size,
                              .failed = options.failed});
  if (options.rank > 0) return std::string();
  LOCKSTEP_ASSIGN_OR_RETURN(const NcclApi::UniqueId id,
                            NcclCollective::NewId(nccl_.get()));
  return std::string(id.bytes, sizeof(id.bytes));
}

absl::Status CudaRank::MeetRanks(const std::string& id,
                                 absl::Duration timeout) {
  LOCKSTEP_RETURN_IF_ERROR(device_->MakeCurrent());
  LOCKSTEP_ASSIGN_OR_RETURN(const NcclApi::UniqueId parsed, ParseId(id));
  LOCKSTEP_RETURN_IF_ERROR(collective_->Join(parsed, timeout));
  StagedCollective staged(collective_.get(), stream_.get());
  return TestCollective(&staged, timeout);
}

void CudaRank::CloseCollective() {
  if (collective_ != nullptr) collective_->StopWatching();
}

absl::StatusOr<std::unique_ptr<Engine>> CudaRank::MakeEngine(
    const ModelFiles& model, const Shard& shard,
    const CudaEngineOptions& options, kernels::ThreadPool* pool) {
  LOCKSTEP_RETURN_IF_ERROR(device_->MakeCurrent());
  return CudaEngine::Create(model, shard, options, pool, stream_.get(),
                            collective_.get());
}

}  // namespace lockstep
