#include "worker/device/cuda_driver.h"

#include <absl/strings/str_cat.h>
#include <dlfcn.h>

#include "common/status_macros.h"

namespace lockstep {
namespace {

// What kernels built with CUDA 13.0 need: drivers of the 580 branch on.
constexpr int kLeastVersion = 13000;

std::string VersionName(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

// Finds entry points, and remembers the first that is missing.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename Function>
  void Find(const char* name, Function* function) {
    void* const symbol = dlsym(library_, name);
    if (symbol == nullptr && missing_ == nullptr) missing_ = name;
    *function = reinterpret_cast<Function>(symbol);
  }

  const char* missing() const { return missing_; }

 private:
  void* const library_;
  const char* missing_ = nullptr;
};

absl::StatusOr<CudaApi> FindApi(void* library, const std::string& name) {
  CudaApi api;
  Symbols symbols(library);
  symbols.Find("cuInit", &api.init);
  symbols.Find("cuDriverGetVersion", &api.driver_version);
  symbols.Find("cuGetErrorName", &api.error_name);
  symbols.Find("cuGetErrorString", &api.error_string);
  symbols.Find("cuDeviceGetCount", &api.device_count);
  symbols.Find("cuDeviceGet", &api.device_get);
  symbols.Find("cuDeviceGetName", &api.device_name);
  symbols.Find("cuDeviceGetAttribute", &api.device_attribute);
  symbols.Find("cuDevicePrimaryCtxRetain", &api.primary_context_retain);
  symbols.Find("cuDevicePrimaryCtxRelease_v2", &api.primary_context_release);
  symbols.Find("cuCtxSetCurrent", &api.set_current);
  symbols.Find("cuMemGetInfo_v2", &api.memory_info);
  symbols.Find("cuMemAlloc_v2", &api.allocate);
  symbols.Find("cuMemFree_v2", &api.free);
  symbols.Find("cuMemHostAlloc", &api.host_allocate);
  symbols.Find("cuMemFreeHost", &api.host_free);
  symbols.Find("cuMemcpyHtoDAsync_v2", &api.copy_to_device);
  symbols.Find("cuMemcpyDtoHAsync_v2", &api.copy_to_host);
  symbols.Find("cuMemcpyDtoDAsync_v2", &api.copy_on_device);
  symbols.Find("cuMemsetD8Async", &api.fill);
  symbols.Find("cuStreamCreate", &api.stream_create);
  symbols.Find("cuStreamDestroy_v2", &api.stream_destroy);
  symbols.Find("cuStreamSynchronize", &api.stream_synchronize);
  symbols.Find("cuStreamQuery", &api.stream_query);
  symbols.Find("cuStreamWaitEvent", &api.stream_wait);
  symbols.Find("cuEventCreate", &api.event_create);
  symbols.Find("cuEventDestroy_v2", &api.event_destroy);
  symbols.Find("cuEventRecord", &api.event_record);
  symbols.Find("cuEventQuery", &api.event_query);
  symbols.Find("cuEventSynchronize", &api.event_synchronize);
  if (symbols.missing() == nullptr) return api;
  return absl::FailedPreconditionError(absl::StrCat(
      name, " is no CUDA driver of version ", VersionName(kLeastVersion),
      " or later: it has no ", symbols.missing(), "."));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDriver>> CudaDriver::Load(
    const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "There is no CUDA driver on this machine: ", dlerror(), "."));
  }
  auto api = FindApi(handle, library);
  if (!api.ok()) {
    dlclose(handle);
    return api.status();
  }
  std::unique_ptr<CudaDriver> driver(new CudaDriver(handle, *api));
  LOCKSTEP_RETURN_IF_ERROR(driver->Start());
  return driver;
}

CudaDriver::~CudaDriver() { dlclose(library_); }

absl::Status CudaDriver::Start() {
  const CudaApi::Result started = api_.init(/*flags=*/0);
  if (started == CudaApi::kNoDevice) {
    return absl::FailedPreconditionError(
        "The CUDA driver finds no device on this machine.");
  }
  LOCKSTEP_RETURN_IF_ERROR(Check(started, "cuInit", "this machine"));
  LOCKSTEP_RETURN_IF_ERROR(Check(api_.driver_version(&version_),
                                 "cuDriverGetVersion", "this machine"));
  if (version_ < kLeastVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "The CUDA driver is of version ", VersionName(version_), "; it must be",
        " of ", VersionName(kLeastVersion), " or later."));
  }
  LOCKSTEP_RETURN_IF_ERROR(Check(api_.device_count(&num_devices_),
                                 "cuDeviceGetCount", "this machine"));
  if (num_devices_ > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "The CUDA driver finds no device on this machine.");
}

absl::Status CudaDriver::Check(CudaApi::Result result, absl::string_view call,
                               absl::string_view device) const {
  if (result == CudaApi::kSuccess) return absl::OkStatus();
  const char* name = nullptr;
  const char* description = nullptr;
  api_.error_name(result, &name);
  api_.error_string(result, &description);
  const std::string message =
      absl::StrCat(call, " on ", device, ": ", name == nullptr ? "error" : name,
                   " (", result, ")", description == nullptr ? "" : ", ",
                   description == nullptr ? "" : description);
  return result == CudaApi::kOutOfMemory ? absl::ResourceExhaustedError(message)
                                         : absl::InternalError(message);
}

}  // namespace lockstep
