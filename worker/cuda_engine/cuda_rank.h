#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "worker/collectives/nccl_collective.h"
#include "worker/collectives/nccl_library.h"
#include "worker/cuda_engine/gpu_rank.h"
#include "worker/device/cuda_device.h"
#include "worker/device/cuda_driver.h"
#include "worker/device/cuda_stream.h"

namespace lockstep {

// A device of CUDA's, the one stream of its rank, and NCCL where there are
// several.
class CudaRank final : public GpuRank {
 public:
  // CUDA's driver, and NCCL: see CudaDriver::Load and NcclLibrary::Load.
  struct Libraries {
    std::string cuda;
    std::string nccl;
  };

  // See CudaDevice::Open. NCCL is asked for by OpenCollective alone.
  static absl::StatusOr<std::unique_ptr<GpuRank>> Open(
      int ordinal, const Libraries& libraries);

  const std::string& name() const override { return device_->name(); }
  int64_t PageBytes(const ModelFiles& model, const Shard& shard,
                    const CudaEngineOptions& options) const override;
  absl::StatusOr<int64_t> KvMemoryBytes(const ModelFiles& model,
                                        const Shard& shard,
                                        const CudaEngineOptions& options,
                                        double utilization) const override;
  absl::StatusOr<std::string> OpenCollective(
      const CollectiveOptions& options) override;
  absl::Status MeetRanks(const std::string& id,
                         absl::Duration timeout) override;
  void CloseCollective() override;
  Collective* collective() override { return collective_.get(); }
  absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(
      const ModelFiles& model, const Shard& shard,
      const CudaEngineOptions& options, kernels::ThreadPool* pool) override;

 private:
  explicit CudaRank(const Libraries& libraries) : libraries_(libraries) {}

  const Libraries libraries_;

  std::unique_ptr<CudaDriver> driver_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<CudaStream> stream_;
  std::unique_ptr<NcclLibrary> nccl_;
  std::unique_ptr<NcclCollective> collective_;
};

}  // namespace lockstep
