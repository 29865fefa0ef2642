#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/simd/simd_avx2.h"

namespace lockstep::kernels {

// What the fast product and the quantization of its rows are written in, for
// AVX2. Only files compiled with these flags may include this.
struct Avx2Integers : Avx2 {
  // Whose sums, integer and fp32, fit 16 registers.
  static constexpr int kMaxFastRows = 4;

  static Ints SetInts(int32_t value) { return _mm256_set1_epi32(value); }
  static Ints AddInts(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  static Ints SubInts(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
  static Ints And(Ints a, Ints b) { return _mm256_and_si256(a, b); }
  static Ints Or(Ints a, Ints b) { return _mm256_or_si256(a, b); }
  template <int kBits>
  static Ints ShiftLeft(Ints v) {
    return _mm256_slli_epi32(v, kBits);
  }
  template <int kBits>
  static Ints ShiftRightSigned(Ints v) {
    return _mm256_srai_epi32(v, kBits);
  }
  template <int kBits>
  static Ints ShiftRight(Ints v) {
    return _mm256_srli_epi32(v, kBits);
  }
  static Ints ShiftRightBy(Ints v, int bits) {
    return _mm256_srl_epi32(v, _mm_cvtsi32_si128(bits));
  }
  static Floats ToFloats(Ints v) { return _mm256_cvtepi32_ps(v); }

  // sum += Σ of four products a lane, of unsigned w and the signed q[4].
  // kSmall: w is at most 63, so that two products fit 16 bits. Else the bytes
  // of even and of odd place are widened apart.
  template <bool kSmall>
  static void DotBytes(Ints w, const int8_t* q, Ints& sum) {
    const Ints x = Broadcast(q);
    if constexpr (kSmall) {
      const Ints pairs = _mm256_maddubs_epi16(w, x);
      sum =
          _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    } else {
      const Ints even_w = _mm256_and_si256(w, _mm256_set1_epi16(255));
      const Ints odd_w = _mm256_srli_epi16(w, 8);
      const Ints even_x = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
      const Ints odd_x = _mm256_srai_epi16(x, 8);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(even_w, even_x));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(odd_w, odd_x));
    }
  }
  // The same of two 16-bit products.
  static void DotWords(Ints w, const int16_t* q, Ints& sum) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(w, Broadcast(q)));
  }

  static Floats Abs(Floats v) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
  }
  static bool AllFinite(Floats absolute) {
    const Floats max = Set(__FLT_MAX__);
    return _mm256_movemask_ps(_mm256_cmp_ps(absolute, max, _CMP_LE_OQ)) == 255;
  }
  static Ints Round(Floats v) { return _mm256_cvtps_epi32(v); }
  // 16 lanes.
  static int32_t FoldInts(const Ints lanes[kVectors]) {
    const Ints sum = _mm256_add_epi32(lanes[0], lanes[1]);
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sum),
                                 _mm256_extracti128_si256(sum, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0b01001110));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0b10110001));
    return _mm_cvtsi128_si32(half);
  }
  static void StoreInt8(int8_t* out, const Ints lanes[kVectors]) {
    const __m128i low = PackInt16(lanes[0]), high = PackInt16(lanes[1]);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                     _mm_packs_epi16(low, high));
  }
  static void StoreInt16(int16_t* out, const Ints lanes[kVectors]) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), PackInt16(lanes[0]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out) + 1, PackInt16(lanes[1]));
  }

 private:
  static Ints Broadcast(const void* q) {
    int32_t word;
    std::memcpy(&word, q, sizeof(word));
    return _mm256_set1_epi32(word);
  }
  static __m128i PackInt16(Ints v) {
    return _mm_packs_epi32(_mm256_castsi256_si128(v),
                           _mm256_extracti128_si256(v, 1));
  }
};

}  // namespace lockstep::kernels
