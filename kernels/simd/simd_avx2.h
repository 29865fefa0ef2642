#pragma once

#include <immintrin.h>

#include <cstdint>

namespace lockstep::kernels {

// The vector operations that the kernel templates are written in, for AVX2,
// FMA and F16C. 16 virtual lanes (lanes.h) are two registers. Only files
// compiled with these flags may include this.
struct Avx2 {
  using Floats = __m256;
  using Ints = __m256i;
  static constexpr int kWidth = 8;
  static constexpr int kVectors = 2;  // of 16 lanes

  // Tile shapes that fit 16 registers.
  static constexpr int kMaxTileRows = 6;
  static constexpr int TilePanels(int rows) { return rows <= 2 ? 2 : 1; }
  static constexpr int kMaxDirectRows = 2;
  static constexpr int DirectPanels(int rows) { return rows == 1 ? 2 : 1; }

  static Floats Zero() { return _mm256_setzero_ps(); }
  static Floats Set(float value) { return _mm256_set1_ps(value); }
  static Floats Load(const float* p) { return _mm256_loadu_ps(p); }
  static void Store(float* p, Floats v) { _mm256_storeu_ps(p, v); }
  static Floats Add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats Sub(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
  static Floats Mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats Div(Floats a, Floats b) { return _mm256_div_ps(a, b); }
  static Floats Fma(Floats a, Floats b, Floats c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  // The second operand where either is NaN.
  static Floats Min(Floats a, Floats b) { return _mm256_min_ps(a, b); }
  static Floats Max(Floats a, Floats b) { return _mm256_max_ps(a, b); }

  // Lanes below n (which may be out of [0, kWidth]); the others are `fill`, or
  // neither read nor written.
  static Ints First(int n) {
    const Ints lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
  }
  static Floats KeepFirst(Floats v, int n, Floats fill) {
    return _mm256_blendv_ps(fill, v, _mm256_castsi256_ps(First(n)));
  }
  static Floats LoadFirst(const float* p, int n) {
    return _mm256_maskload_ps(p, First(n));
  }
  static void StoreFirst(float* p, Floats v, int n) {
    _mm256_maskstore_ps(p, First(n), v);
  }

  // 0 where x < limit, else value.
  static Floats ZeroBelow(Floats x, Floats limit, Floats value) {
    return _mm256_and_ps(_mm256_cmp_ps(x, limit, _CMP_NLT_UQ), value);
  }

  // 2^n of the n in the low bits of x; see lanes.h.
  static Floats PowerOfTwo(Floats x) {
    const Ints biased =
        _mm256_add_epi32(_mm256_castps_si256(x), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }

  // The sum and the maximum of the 16 lanes, folded by halves.
  static float FoldSum(const Floats lanes[kVectors]) {
    const Floats a = Add(lanes[0], lanes[1]);
    __m128 b =
        _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
  }
  static float FoldMax(const Floats lanes[kVectors]) {
    const Floats a = Max(lanes[0], lanes[1]);
    __m128 b =
        _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
  }

  // Weights as stored.
  static Floats LoadHalf(const uint8_t* p) {
    return _mm256_cvtph_ps(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Floats LoadBFloat16(const uint8_t* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static Floats LoadInt8(const uint8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  }
  static Floats LoadUint8(const uint8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
  }
  static Ints LoadInts(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }

  static Ints ShiftLeft(Ints words, int bits) {
    return reinterpret_cast<Ints>(reinterpret_cast<__v8su>(words) << bits);
  }
  static Ints ShiftRight(Ints words, int bits) {
    return reinterpret_cast<Ints>(reinterpret_cast<__v8su>(words) >> bits);
  }
  static Ints And(Ints words, uint32_t mask) {
    return _mm256_and_si256(words, _mm256_set1_epi32(mask));
  }
  // a | (b & mask)
  static Ints OrMasked(Ints a, Ints b, uint32_t mask) {
    return _mm256_or_si256(a, And(b, mask));
  }

  // Byte `index`, from the low end, of each word as a float.
  struct ByteTable {};
  static ByteTable MakeByteTable() { return {}; }
  static Floats Byte(Ints words, int index, ByteTable) {
    return _mm256_cvtepi32_ps(And(ShiftRight(words, 8 * index), 255));
  }

  // The nibble of a word that is column `index` of eight (packed_format.h) as a
  // float, less an offset.
  using NibbleTable = Ints;
  static NibbleTable MakeNibbleTable(int offset) {
    return _mm256_set1_epi32(offset);
  }
  static Floats Nibble(Ints words, int index, NibbleTable offset) {
    const Ints nibble =
        And(ShiftRight(words, 8 * (index % 4) + 4 * (index / 4)), 15);
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(nibble, offset));
  }
};

}  // namespace lockstep::kernels
