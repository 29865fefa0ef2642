#include "worker/device/cuda_device.h"

#include <absl/strings/str_cat.h>

#include "common/status_macros.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Open(
    const CudaDriver* driver, int ordinal) {
  if (ordinal < 0 || ordinal >= driver->num_devices()) {
    return absl::InvalidArgumentError(
        absl::StrCat("There is no device ", ordinal, ": this machine has ",
                     driver->num_devices(), ", counted from 0."));
  }
  CudaApi::Device handle = 0;
  LOCKSTEP_RETURN_IF_ERROR(
      driver->Check(driver->api().device_get(&handle, ordinal), "cuDeviceGet",
                    absl::StrCat("device ", ordinal)));
  std::unique_ptr<CudaDevice> device(new CudaDevice(driver, handle));
  LOCKSTEP_RETURN_IF_ERROR(device->Describe(ordinal));
  LOCKSTEP_RETURN_IF_ERROR(device->Check(
      driver->api().primary_context_retain(&device->context_, handle),
      "cuDevicePrimaryCtxRetain"));
  LOCKSTEP_RETURN_IF_ERROR(device->MakeCurrent());
  return device;
}

absl::Status CudaDevice::Describe(int ordinal) {
  name_ = absl::StrCat("device ", ordinal);
  char model[256] = "";
  LOCKSTEP_RETURN_IF_ERROR(Check(
      api().device_name(model, sizeof(model), device_), "cuDeviceGetName"));
  absl::StrAppend(&name_, " (", model, ")");
  int major = 0, minor = 0;
  LOCKSTEP_RETURN_IF_ERROR(Check(
      api().device_attribute(&major, CudaApi::kComputeCapabilityMajor, device_),
      "cuDeviceGetAttribute"));
  LOCKSTEP_RETURN_IF_ERROR(Check(
      api().device_attribute(&minor, CudaApi::kComputeCapabilityMinor, device_),
      "cuDeviceGetAttribute"));
  compute_capability_ = 10 * major + minor;
  return absl::OkStatus();
}

// What a driver says of a device that is given back helps nobody.
CudaDevice::~CudaDevice() {
  if (context_ != nullptr) api().primary_context_release(device_);
}

absl::Status CudaDevice::MakeCurrent() const {
  return Check(api().set_current(context_), "cuCtxSetCurrent");
}

absl::StatusOr<CudaDevice::Memory> CudaDevice::GetMemory() const {
  size_t free = 0, total = 0;
  LOCKSTEP_RETURN_IF_ERROR(
      Check(api().memory_info(&free, &total), "cuMemGetInfo"));
  return Memory{static_cast<int64_t>(free), static_cast<int64_t>(total)};
}

}  // namespace lockstep
