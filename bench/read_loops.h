#pragma once

#include <cstddef>

#include "bench/peak_loops.h"

// Included once by each file that is compiled for an instruction set, so what
// is here belongs to that file alone.
namespace lockstep::bench {
namespace {

enum class Ahead { kNo, kNear, kFar };

// `Vector` is a vector type of the compiler's.
template <typename Vector, Ahead ahead>
void Read(const char* begin, size_t bytes) {
  constexpr int kChains = PeakLoops::kReadBytes / sizeof(Vector);
  constexpr int kLine = 64;
  constexpr ptrdiff_t kNearBytes = 1024, kFarBytes = 4096;
  Vector sums[kChains] = {};
  for (size_t at = 0; at < bytes; at += PeakLoops::kReadBytes) {
    const char* block = begin + at;
#pragma GCC unroll 8
    for (size_t line = 0; line < PeakLoops::kReadBytes; line += kLine) {
      if (ahead == Ahead::kNear) {
        __builtin_prefetch(block + line + kNearBytes, 0, /*locality=*/3);
      } else if (ahead == Ahead::kFar) {
        __builtin_prefetch(block + line + kFarBytes, 0, /*locality=*/2);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) {
      sums[i] ^= reinterpret_cast<const Vector*>(block)[i];
    }
  }
  for (const Vector& sum : sums) asm volatile("" : : "m"(sum));
}

}  // namespace
}  // namespace lockstep::bench
