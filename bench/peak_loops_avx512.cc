#include <immintrin.h>

#include <cstdint>

#include "bench/peak_loops.h"
#include "bench/read_loops.h"

namespace lockstep::bench {
namespace {

constexpr int kChains = 24;  // 32 registers

// One loop for each instruction; its name must be a constant of the source.
#define LOCKSTEP_PEAK_LOOP(name, instruction)                                  \
  void name(int64_t rounds) {                                                  \
    __m512i sums[kChains] = {};                                                \
    const __m512i factor = {};                                                 \
    for (int64_t round = 0; round < rounds; ++round) {                         \
      _Pragma("GCC unroll 24") for (int i = 0; i < kChains; ++i) {             \
        asm volatile(instruction " %1, %1, %0" : "+v"(sums[i]) : "v"(factor)); \
      }                                                                        \
    }                                                                          \
  }

LOCKSTEP_PEAK_LOOP(Fp32, "vfmadd231ps")
LOCKSTEP_PEAK_LOOP(BFloat16, "vdpbf16ps")
LOCKSTEP_PEAK_LOOP(Int16, "vpdpwssd")
LOCKSTEP_PEAK_LOOP(Int8, "vpdpbusd")

#undef LOCKSTEP_PEAK_LOOP

}  // namespace

const PeakLoops& Avx512PeakLoops() {
  static constexpr PeakLoops kLoops = {
      .fp32 = {Fp32, kChains * 16 * 2.0},
      .bf16 = {BFloat16, kChains * 32 * 2.0},
      .int16 = {Int16, kChains * 32 * 2.0},
      .int8 = {Int8, kChains * 64 * 2.0},
      .reads = {Read<__m512i, Ahead::kNo>, Read<__m512i, Ahead::kNear>,
                Read<__m512i, Ahead::kFar>}};
  return kLoops;
}

}  // namespace lockstep::bench
