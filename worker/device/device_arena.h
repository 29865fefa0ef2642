#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstddef>
#include <memory>
#include <string>

#include "worker/device/cuda_device.h"

namespace lockstep {

// Device memory for one purpose, allocated once and handed out piece by piece:
// what was budgeted is what is used, and nothing is allocated in a step.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       auto weights, DeviceArena::Create(device.get(), "weights", bytes));
//   LOCKSTEP_ASSIGN_OR_RETURN(auto qkv, weights->Take(qkv_bytes, "layer 0"));
//
// Pieces live as long as the arena, which the device outlives. One thread.
class DeviceArena {
 public:
  // What cuBLASLt and the kernels' widest reads ask for.
  static constexpr size_t kAlignment = 256;

  // RESOURCE_EXHAUSTED says for what there is not enough, and what is free.
  static absl::StatusOr<std::unique_ptr<DeviceArena>> Create(
      const CudaDevice* device, absl::string_view purpose, size_t bytes);

  ~DeviceArena();
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  // RESOURCE_EXHAUSTED names `what` when the arena was made too small.
  absl::StatusOr<CudaApi::Address> Take(size_t bytes, absl::string_view what);

  size_t used_bytes() const { return used_; }
  size_t bytes() const { return bytes_; }

 private:
  DeviceArena(const CudaDevice* device, absl::string_view purpose,
              CudaApi::Address memory, size_t bytes)
      : device_(device), purpose_(purpose), memory_(memory), bytes_(bytes) {}

  const CudaDevice* const device_;
  const std::string purpose_;
  const CudaApi::Address memory_;
  const size_t bytes_;
  size_t used_ = 0;
};

}  // namespace lockstep
