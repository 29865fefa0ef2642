#include "worker/device/pinned_memory.h"

#include "common/status_macros.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<PinnedMemory>> PinnedMemory::Allocate(
    const CudaDevice* device, size_t bytes) {
  void* data = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(
      device->Check(device->api().host_allocate(&data, bytes, /*flags=*/0),
                    "cuMemHostAlloc"));
  return std::unique_ptr<PinnedMemory>(new PinnedMemory(device, data, bytes));
}

PinnedMemory::~PinnedMemory() { device_->api().host_free(data_); }

}  // namespace lockstep
