#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>

#include "worker/device/cuda_driver.h"

namespace lockstep {

// One GPU, with its primary context: the one that CUDA's runtime uses too, so
// that kernels built by nvcc run in it.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto device, CudaDevice::Open(driver.get(), 0));
//   LOCKSTEP_RETURN_IF_ERROR(device->MakeCurrent());  // on each other thread
//
// The driver outlives it, and it what is made on it. Any thread.
class CudaDevice {
 public:
  // Makes it current on this thread. INVALID_ARGUMENT for an ordinal that the
  // machine has no device of.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(
      const CudaDriver* driver, int ordinal);

  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  // Calls of a thread that made none current go nowhere.
  absl::Status MakeCurrent() const;

  const std::string& name() const { return name_; }  // "device 0 (NVIDIA H200)"
  int compute_capability() const { return compute_capability_; }  // 90 is 9.0

  struct Memory {
    int64_t free_bytes;  // of all processes
    int64_t total_bytes;
  };
  absl::StatusOr<Memory> GetMemory() const;

  const CudaApi& api() const { return driver_->api(); }
  absl::Status Check(CudaApi::Result result, absl::string_view call) const {
    return driver_->Check(result, call, name_);
  }

 private:
  CudaDevice(const CudaDriver* driver, CudaApi::Device device)
      : driver_(driver), device_(device) {}

  absl::Status Describe(int ordinal);

  const CudaDriver* const driver_;
  const CudaApi::Device device_;
  CudaApi::Context context_ = nullptr;
  std::string name_;
  int compute_capability_ = 0;
};

}  // namespace lockstep
