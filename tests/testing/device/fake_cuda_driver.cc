// A CUDA driver without a device, as a shared library with CUDA's own symbols:
// memory is the host's, a stream is a thread that works through a queue. Fails
// and dawdles as a test tells it. Here: devices and memory.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/testing/device/fake_cuda_machine.h"

namespace lockstep::fake_cuda {
extern "C" {

int cuInit(unsigned) {
  return Call("cuInit", [](auto&) {
    return machine().devices == 0 ? kNoDevice : kSuccess;
  });
}

int cuDriverGetVersion(int* version) {
  *version = machine().version;
  return kSuccess;
}

int cuGetErrorName(int error, const char** name) {
  switch (error) {
    case kOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return kSuccess;
    case kInvalidContext:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      return kSuccess;
    case kIllegalAddress:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return kSuccess;
    default:
      *name = nullptr;
      return kInvalidValue;
  }
}

int cuGetErrorString(int error, const char** description) {
  *description =
      error == kIllegalAddress ? "an illegal memory access" : nullptr;
  return error == kIllegalAddress ? kSuccess : kInvalidValue;
}

int cuDeviceGetCount(int* count) {
  return Call("cuDeviceGetCount", [&](auto&) {
    *count = machine().devices;
    return kSuccess;
  });
}

int cuDeviceGet(int* device, int ordinal) {
  return Call("cuDeviceGet", [&](auto&) {
    *device = ordinal;
    return kSuccess;
  });
}

int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Fake GPU", bytes);
  return kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  return Call("cuDeviceGetAttribute", [&](auto&) {
    *value = attribute == 75 ? 9 : 0;
    return kSuccess;
  });
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  return Call("cuDevicePrimaryCtxRetain", [&](auto&) {
    *context = reinterpret_cast<void*>(intptr_t{device} + 1);
    ++machine().alive;
    return kSuccess;
  });
}

int cuDevicePrimaryCtxRelease_v2(int) {
  const std::lock_guard lock(machine().mutex);
  --machine().alive;
  return kSuccess;
}

int cuCtxSetCurrent(void* context) {
  return Call("cuCtxSetCurrent", [&](auto&) {
    current = static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1;
    return kSuccess;
  });
}

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  return Call("cuMemGetInfo_v2", [&](auto&) {
    *total = machine().total;
    *free = machine().total - machine().used;
    return kSuccess;
  });
}

int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  return Call("cuMemAlloc_v2", [&](auto&) {
    Machine& m = machine();
    if (current == kNone) return kInvalidContext;
    if (bytes == 0) return kInvalidValue;
    if (m.used + static_cast<int64_t>(bytes) > m.total) return kOutOfMemory;
    void* const memory = std::malloc(bytes);
    std::memset(memory, 0xff, bytes);  // NaN to whoever reads it unwritten
    m.used += bytes;
    m.allocations[memory] = {bytes, current};
    *address = reinterpret_cast<uint64_t>(memory);
    return kSuccess;
  });
}

int cuMemFree_v2(uint64_t address) {
  Machine& m = machine();
  std::unique_lock lock(m.mutex);
  const auto found = m.allocations.find(reinterpret_cast<void*>(address));
  if (found == m.allocations.end()) return kInvalidValue;
  AwaitDevice(found->second.device, lock);
  m.used -= found->second.bytes;
  std::free(found->first);
  m.allocations.erase(found);
  return kSuccess;
}

int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  return Call("cuMemHostAlloc", [&](auto&) {
    if (current == kNone) return kInvalidContext;
    *memory = std::malloc(bytes);
    machine().page_locked[*memory] = {bytes, current};
    return kSuccess;
  });
}

int cuMemFreeHost(void* memory) {
  Machine& m = machine();
  std::unique_lock lock(m.mutex);
  const auto found = m.page_locked.find(memory);
  if (found == m.page_locked.end()) return kInvalidValue;
  AwaitDevice(found->second.device, lock);
  std::free(found->first);
  m.page_locked.erase(found);
  return kSuccess;
}
}

}  // namespace lockstep::fake_cuda
