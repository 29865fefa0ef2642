#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/simd/simd_avx512.h"

namespace lockstep::kernels {

// What the fast product and the quantization of its rows are written in, for
// AVX-512 with VNNI. Only files compiled with these flags may include this.
struct Avx512Integers : Avx512 {
  // Whose sums, integer and fp32, fit 32 registers.
  static constexpr int kMaxFastRows = 8;

  static Ints SetInts(int32_t value) { return _mm512_set1_epi32(value); }
  static Ints AddInts(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Ints SubInts(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
  static Ints And(Ints a, Ints b) { return _mm512_and_si512(a, b); }
  static Ints Or(Ints a, Ints b) { return _mm512_or_si512(a, b); }
  template <int kBits>
  static Ints ShiftLeft(Ints v) {
    return _mm512_slli_epi32(v, kBits);
  }
  template <int kBits>
  static Ints ShiftRightSigned(Ints v) {
    return _mm512_srai_epi32(v, kBits);
  }
  template <int kBits>
  static Ints ShiftRight(Ints v) {
    return _mm512_srli_epi32(v, kBits);
  }
  static Ints ShiftRightBy(Ints v, int bits) {
    return _mm512_srl_epi32(v, _mm_cvtsi32_si128(bits));
  }
  static Floats ToFloats(Ints v) { return _mm512_cvtepi32_ps(v); }

  // sum += Σ of four products a lane, of unsigned w and the signed q[4]. In
  // assembly, since gcc 12 copies the sum before and after the intrinsic and
  // does not fold the broadcast into it.
  template <bool kSmall>
  static void DotBytes(Ints w, const int8_t* q, Ints& sum) {
    asm("vpdpbusd %2%{1to16%}, %1, %0"
        : "+v"(sum)
        : "v"(w), "m"(*reinterpret_cast<const int32_t*>(q)));
  }
  // The same of two 16-bit products.
  static void DotWords(Ints w, const int16_t* q, Ints& sum) {
    asm("vpdpwssd %2%{1to16%}, %1, %0"
        : "+v"(sum)
        : "v"(w), "m"(*reinterpret_cast<const int32_t*>(q)));
  }

  static Floats Abs(Floats v) { return _mm512_abs_ps(v); }
  static bool AllFinite(Floats absolute) {
    const Floats max = Set(__FLT_MAX__);
    return _mm512_cmp_ps_mask(absolute, max, _CMP_LE_OQ) == 0xffff;
  }
  static Ints Round(Floats v) { return _mm512_cvtps_epi32(v); }
  // 16 lanes.
  static int32_t FoldInts(const Ints lanes[kVectors]) {
    return _mm512_reduce_add_epi32(lanes[0]);
  }
  static void StoreInt8(int8_t* out, const Ints lanes[kVectors]) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                     _mm512_cvtepi32_epi8(lanes[0]));
  }
  static void StoreInt16(int16_t* out, const Ints lanes[kVectors]) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                        _mm512_cvtepi32_epi16(lanes[0]));
  }
};

}  // namespace lockstep::kernels
