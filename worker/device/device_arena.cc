#include "worker/device/device_arena.h"

#include <absl/strings/str_cat.h>

#include "common/status_macros.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<DeviceArena>> DeviceArena::Create(
    const CudaDevice* device, absl::string_view purpose, size_t bytes) {
  CudaApi::Address memory = 0;
  // CUDA refuses to allocate nothing.
  const CudaApi::Result result =
      bytes == 0 ? CudaApi::kSuccess : device->api().allocate(&memory, bytes);
  if (result == CudaApi::kOutOfMemory) {
    LOCKSTEP_ASSIGN_OR_RETURN(const CudaDevice::Memory left,
                              device->GetMemory());
    return absl::ResourceExhaustedError(absl::StrCat(
        "The ", purpose, " take ", bytes, " bytes on ", device->name(),
        ", which has ", left.free_bytes, " of ", left.total_bytes, " left."));
  }
  LOCKSTEP_RETURN_IF_ERROR(device->Check(result, "cuMemAlloc"));
  return std::unique_ptr<DeviceArena>(
      new DeviceArena(device, purpose, memory, bytes));
}

DeviceArena::~DeviceArena() {
  if (memory_ != 0) device_->api().free(memory_);
}

absl::StatusOr<CudaApi::Address> DeviceArena::Take(size_t bytes,
                                                   absl::string_view what) {
  const size_t begin = (used_ + kAlignment - 1) / kAlignment * kAlignment;
  if (begin > bytes_ || bytes > bytes_ - begin) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, " takes ", bytes, " bytes of the ", purpose_, " on ",
                     device_->name(), ", of which ", bytes_ - used_, " of ",
                     bytes_, " are left."));
  }
  used_ = begin + bytes;
  return memory_ + begin;
}

}  // namespace lockstep
