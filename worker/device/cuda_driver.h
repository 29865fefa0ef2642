#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <memory>
#include <string>

#include "worker/device/cuda_api.h"

namespace lockstep {

// CUDA's driver, loaded at run time and started.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto driver, CudaDriver::Load());
//   LOCKSTEP_RETURN_IF_ERROR(
//       driver->Check(driver->api().free(address), "cuMemFree", "device 0"));
//
// Outlives whatever it made. Any number of threads may use it.
class CudaDriver {
 public:
  // FAILED_PRECONDITION, in one sentence, where there is no driver, none of
  // this version, or no device.
  static absl::StatusOr<std::unique_ptr<CudaDriver>> Load(
      const std::string& library = "libcuda.so.1");

  ~CudaDriver();
  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;

  const CudaApi& api() const { return api_; }
  int version() const { return version_; }  // 13000 is 13.0
  int num_devices() const { return num_devices_; }

  // OK for success; else RESOURCE_EXHAUSTED where memory is out and INTERNAL
  // for the rest, with the call, the device and what the driver says. An error
  // of a kernel shows in some later call, and in all after it.
  absl::Status Check(CudaApi::Result result, absl::string_view call,
                     absl::string_view device) const;

 private:
  CudaDriver(void* library, const CudaApi& api)
      : library_(library), api_(api) {}

  absl::Status Start();

  void* const library_;
  const CudaApi api_;
  int version_ = 0;
  int num_devices_ = 0;
};

}  // namespace lockstep
