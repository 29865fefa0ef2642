#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>

#include "worker/device/cuda_device.h"

namespace lockstep {

// Page-locked host memory: copies to and from a device run beside the host.
// Write into it only when the last copy from it has run: see CudaEvent.
//
// The device outlives it. Locked pages are taken from the whole machine, so
// this is for what a step stages, not for weights.
class PinnedMemory {
 public:
  static absl::StatusOr<std::unique_ptr<PinnedMemory>> Allocate(
      const CudaDevice* device, size_t bytes);

  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  PinnedMemory(const CudaDevice* device, void* data, size_t bytes)
      : device_(device), data_(data), bytes_(bytes) {}

  const CudaDevice* const device_;
  void* const data_;
  const size_t bytes_;
};

}  // namespace lockstep
