#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "worker/cuda_engine/gpu_rank.h"
#include "worker/device/cuda_device.h"
#include "worker/device/cuda_driver.h"
#include "worker/device/cuda_stream.h"

namespace lockstep {

// A device of CUDA's, and the one stream of its rank; alone in its group, as
// ranks have no way yet to pass on NCCL's id.
class CudaRank final : public GpuRank {
 public:
  // `library` is CUDA's driver. See CudaDriver::Load and CudaDevice::Open.
  static absl::StatusOr<std::unique_ptr<GpuRank>> Open(
      int ordinal, const std::string& library);

  const std::string& name() const override { return device_->name(); }
  int64_t PageBytes(const ModelFiles& model, const Shard& shard,
                    const CudaEngineOptions& options) const override;
  absl::StatusOr<int64_t> KvMemoryBytes(const ModelFiles& model,
                                        const Shard& shard,
                                        const CudaEngineOptions& options,
                                        double utilization) const override;
  absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(
      const ModelFiles& model, const Shard& shard,
      const CudaEngineOptions& options, kernels::ThreadPool* pool) override;

 private:
  CudaRank() = default;

  std::unique_ptr<CudaDriver> driver_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<CudaStream> stream_;
};

}  // namespace lockstep
