#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/paged_batch.h"
#include "worker/device/device_arena.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// One rank's KV pages in device memory, all layers; T is float or BFloat16.
// Fixed for the life of the engine, and not initialized.
template <typename T>
class DeviceKvPages {
 public:
  // RESOURCE_EXHAUSTED where they do not fit. The device outlives the result.
  static absl::StatusOr<std::unique_ptr<DeviceKvPages>> Create(
      const CudaDevice* device, const ModelConfig& config, const Shard& shard,
      int num_pages, int page_size);

  // One entry a layer.
  absl::Span<const cuda::PagedKv<T>> layers() const { return layers_; }

  // Of one page, all layers.
  static int64_t PageBytes(const ModelConfig& config, const Shard& shard,
                           int page_size);

 private:
  DeviceKvPages() = default;

  std::unique_ptr<DeviceArena> arena_;
  std::vector<cuda::PagedKv<T>> layers_;
};

}  // namespace lockstep
