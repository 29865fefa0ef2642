#include "tests/testing/allocation_counter.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> allocations = 0;

void* Allocate(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}

void* Allocate(size_t bytes, std::align_val_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const size_t multiple = static_cast<size_t>(alignment);
  return std::aligned_alloc(multiple,
                            (bytes + multiple - 1) / multiple * multiple);
}

void* OrAbort(void* memory) {
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

// All forms, since those of a sanitizer do not call each other, and memory of
// one must not be freed by the other.
void* operator new(size_t bytes) { return OrAbort(Allocate(bytes)); }
void* operator new[](size_t bytes) { return OrAbort(Allocate(bytes)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return OrAbort(Allocate(bytes, alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return OrAbort(Allocate(bytes, alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes);
}
void* operator new(size_t bytes, std::align_val_t alignment,
                   const std::nothrow_t&) noexcept {
  return Allocate(bytes, alignment);
}
void* operator new[](size_t bytes, std::align_val_t alignment,
                     const std::nothrow_t&) noexcept {
  return Allocate(bytes, alignment);
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t,
                     const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t,
                       const std::nothrow_t&) noexcept {
  std::free(memory);
}

namespace lockstep::testing {

int64_t NumAllocations() { return allocations.load(std::memory_order_relaxed); }

}  // namespace lockstep::testing
