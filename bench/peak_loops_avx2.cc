#include <immintrin.h>

#include <cstdint>

#include "bench/peak_loops.h"
#include "bench/read_loops.h"

namespace lockstep::bench {
namespace {

constexpr int kChains = 12;  // 16 registers

void Fp32(int64_t rounds) {
  __m256 sums[kChains] = {};
  const __m256 factor = {};
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) {
      asm volatile("vfmadd231ps %1, %1, %0" : "+x"(sums[i]) : "x"(factor));
    }
  }
}

}  // namespace

const PeakLoops& Avx2PeakLoops() {
  static constexpr PeakLoops kLoops = {
      .fp32 = {Fp32, kChains * 8 * 2.0},
      .bf16 = {},
      .int16 = {},
      .int8 = {},
      .reads = {Read<__m256i, Ahead::kNo>, Read<__m256i, Ahead::kNear>,
                Read<__m256i, Ahead::kFar>}};
  return kLoops;
}

}  // namespace lockstep::bench
