#include "tests/simulation/surroundings.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace lockstep::testing {
namespace {

constexpr size_t kGranule = 16;  // of malloc
constexpr size_t kMaxPadding = 24 * kGranule;
constexpr size_t kMaxDecoy = 512;
constexpr int kDecoys = 32;
constexpr int64_t kMaxSkewSeconds = 1 << 30;
constexpr int64_t kMaxJumpSeconds = 1 << 10;

struct State {
  bool active = false;
  uint64_t random = 0;
  int64_t skew_seconds = 0;
  std::array<void*, kDecoys> decoys = {};

  // xorshift64* (Vigna: An experimental exploration of Marsaglia's xorshift
  // generators, scrambled, 2016).
  uint64_t Next() {
    random ^= random >> 12;
    random ^= random << 25;
    random ^= random >> 27;
    return (random * 0x2545f4914f6cdd1d) >> 32;
  }
};

thread_local State state;

void* Allocate(size_t size) {
  if (state.active) {
    const uint64_t draw = state.Next();
    if (draw % 8 == 0) {
      void*& decoy = state.decoys[draw / 8 % kDecoys];
      std::free(decoy);
      decoy = std::malloc(1 + draw / 256 % kMaxDecoy);
    }
    size += state.Next() % (kMaxPadding / kGranule) * kGranule;
  }
  return std::malloc(size == 0 ? 1 : size);
}

int64_t SkewSeconds() {
  return state.skew_seconds +
         static_cast<int64_t>(state.Next() % kMaxJumpSeconds);
}

}  // namespace

Surroundings::Surroundings(uint64_t seed) {
  state.random = seed * 2 + 1;  // not 0
  for (int i = 0; i < 8; ++i) state.Next();
  state.skew_seconds = static_cast<int64_t>(state.Next() % kMaxSkewSeconds);
  state.active = true;
}

Surroundings::~Surroundings() {
  state.active = false;
  for (void*& decoy : state.decoys) {
    std::free(decoy);
    decoy = nullptr;
  }
}

}  // namespace lockstep::testing

using lockstep::testing::Allocate;
using lockstep::testing::SkewSeconds;
using lockstep::testing::state;

namespace {

void* AllocateAligned(size_t size, std::align_val_t alignment) {
  const size_t multiple = static_cast<size_t>(alignment);
  return std::aligned_alloc(multiple,
                            (size + multiple - 1) / multiple * multiple);
}

void* OrAbort(void* block) {
  if (block == nullptr) std::abort();
  return block;
}

}  // namespace

// All forms, since those of a sanitizer do not call each other, and memory of
// one must not be freed by the other.
void* operator new(size_t size) { return OrAbort(Allocate(size)); }
void* operator new[](size_t size) { return OrAbort(Allocate(size)); }
void* operator new(size_t size, std::align_val_t alignment) {
  return OrAbort(AllocateAligned(size, alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return OrAbort(AllocateAligned(size, alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return Allocate(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return Allocate(size);
}
void* operator new(size_t size, std::align_val_t alignment,
                   const std::nothrow_t&) noexcept {
  return AllocateAligned(size, alignment);
}
void* operator new[](size_t size, std::align_val_t alignment,
                     const std::nothrow_t&) noexcept {
  return AllocateAligned(size, alignment);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete[](void* block, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete(void* block, size_t, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete[](void* block, size_t, std::align_val_t) noexcept {
  std::free(block);
}

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && state.active) {
    time->tv_sec += SkewSeconds();
  }
  return static_cast<int>(result);
}
