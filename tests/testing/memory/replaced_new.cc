#include "tests/testing/memory/replaced_new.h"

#include <cstdlib>
#include <new>

namespace {

void* Allocate(size_t bytes) {
  bytes = lockstep::testing::OnNew(bytes);
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* Allocate(size_t bytes, std::align_val_t alignment) {
  bytes = lockstep::testing::OnNew(bytes);
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
