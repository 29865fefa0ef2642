// Tests on a GPU. All that they allocate is managed memory, so that kernels
// find a test's vectors where they lie; and they have a main of their own,
// which leaves machines without a GPU alone.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "kernels/cuda/test_device.h"

// As CUDA's runtime declares them.
extern "C" {
int cudaGetDeviceCount(int* count);
int cudaMallocManaged(void** memory, size_t bytes, unsigned flags);
int cudaDeviceSynchronize();
}

namespace lockstep::cuda {
namespace {

constexpr size_t kRegionBytes = size_t{16} << 30;  // what is touched is used
constexpr size_t kAlignment = 64;
constexpr unsigned kAttachGlobal = 1;

// Managed memory, from main on; nothing of it is given back.
std::atomic<std::byte*> region = nullptr;
std::atomic<size_t> used = 0;

// False where there is no GPU.
bool StartRegion() {
  int devices = 0;
  void* memory = nullptr;
  if (cudaGetDeviceCount(&devices) != kCudaSuccess || devices == 0 ||
      cudaMallocManaged(&memory, kRegionBytes, kAttachGlobal) != kCudaSuccess) {
    return false;
  }
  region = static_cast<std::byte*>(memory);
  return true;
}

void* Allocate(size_t bytes) {
  std::byte* const begin = region;
  if (begin == nullptr) return std::malloc(bytes);
  const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const size_t at = used.fetch_add(whole);
  return at + whole <= kRegionBytes ? begin + at : nullptr;
}

bool IsManaged(const void* memory) {
  const std::byte* const begin = region;
  return begin != nullptr && memory >= begin && memory < begin + kRegionBytes;
}

}  // namespace

bool OnGpu() { return true; }

CudaError WaitForDevice() { return cudaDeviceSynchronize(); }

}  // namespace lockstep::cuda

void* operator new(size_t bytes) {
  void* const memory = lockstep::cuda::Allocate(bytes);
  if (memory == nullptr) std::abort();
  return memory;
}

void operator delete(void* memory) noexcept {
  if (!lockstep::cuda::IsManaged(memory)) std::free(memory);
}

void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

int main(int argc, char** argv) {
  if (!lockstep::cuda::StartRegion()) {
    std::printf("There is no GPU, or no driver for one: nothing was run.\n");
    return EXIT_FAILURE;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
