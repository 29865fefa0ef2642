#pragma once

#include <immintrin.h>

#include <cstdint>

namespace lockstep::kernels {

// The vector operations that the kernel templates are written in, for AVX-512
// F, BW, VL, DQ. 16 virtual lanes (lanes.h) are one register. Only files
// compiled with these flags may include this.
struct Avx512 {
  using Floats = __m512;
  using Ints = __m512i;
  static constexpr int kWidth = 16;
  static constexpr int kVectors = 1;  // of 16 lanes

  // Tile shapes that fit 32 registers.
  static constexpr int kMaxTileRows = 12;
  static constexpr int TilePanels(int rows) { return rows <= 6 ? 4 : 2; }
  static constexpr int kMaxDirectRows = 4;
  static constexpr int DirectPanels(int) { return 4; }

  static Floats Zero() { return _mm512_setzero_ps(); }
  static Floats Set(float value) { return _mm512_set1_ps(value); }
  static Floats Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
  static Floats Add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats Sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
  static Floats Mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats Div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  static Floats Fma(Floats a, Floats b, Floats c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  // The second operand where either is NaN.
  static Floats Min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
  static Floats Max(Floats a, Floats b) { return _mm512_max_ps(a, b); }

  // Lanes below n (which may be out of [0, kWidth]); the others are `fill`, or
  // neither read nor written.
  static __mmask16 First(int n) {
    return n >= kWidth ? 0xffff : n <= 0 ? 0 : (1u << n) - 1;
  }
  static Floats KeepFirst(Floats v, int n, Floats fill) {
    return _mm512_mask_mov_ps(fill, First(n), v);
  }
  static Floats LoadFirst(const float* p, int n) {
    return _mm512_maskz_loadu_ps(First(n), p);
  }
  static void StoreFirst(float* p, Floats v, int n) {
    _mm512_mask_storeu_ps(p, First(n), v);
  }

  // 0 where x < limit, else value.
  static Floats ZeroBelow(Floats x, Floats limit, Floats value) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ),
                               value);
  }

  // 2^n of the n in the low bits of x; see lanes.h.
  static Floats PowerOfTwo(Floats x) {
    const Ints biased =
        _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(biased, 23));
  }

  // The sum and the maximum of the 16 lanes, folded by halves.
  static float FoldSum(const Floats lanes[kVectors]) {
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(lanes[0]),
                                   _mm512_extractf32x8_ps(lanes[0], 1));
    __m128 b =
        _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
  }
  static float FoldMax(const Floats lanes[kVectors]) {
    return _mm512_reduce_max_ps(lanes[0]);
  }

  // Weights as stored.
  static Floats LoadHalf(const uint8_t* p) {
    return _mm512_cvtph_ps(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Floats LoadBFloat16(const uint8_t* p) {
    const __m256i bits =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static Floats LoadInt8(const uint8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
  }
  static Floats LoadUint8(const uint8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
  }
  static Ints LoadInts(const uint8_t* p) { return _mm512_loadu_si512(p); }

  static Ints ShiftLeft(Ints words, int bits) {
    return reinterpret_cast<Ints>(reinterpret_cast<__v16su>(words) << bits);
  }
  static Ints ShiftRight(Ints words, int bits) {
    return reinterpret_cast<Ints>(reinterpret_cast<__v16su>(words) >> bits);
  }
  static Ints And(Ints words, uint32_t mask) {
    return _mm512_and_si512(words, _mm512_set1_epi32(mask));
  }
  // a | (b & mask)
  static Ints OrMasked(Ints a, Ints b, uint32_t mask) {
    return _mm512_ternarylogic_epi32(a, b, _mm512_set1_epi32(mask), 0xf8);
  }

  // Byte `index`, from the low end, of each word as a float: shuffles that
  // take one byte of four and zeros.
  struct ByteTable {
    Ints shuffle[4];
  };
  static ByteTable MakeByteTable() {
    const Ints zeros = _mm512_set1_epi32(0x80808000);
    const Ints first = _mm512_add_epi32(zeros, _mm512_set4_epi32(12, 8, 4, 0));
    ByteTable table;
    for (int i = 0; i < 4; ++i) {
      table.shuffle[i] = _mm512_add_epi32(first, _mm512_set1_epi32(i));
    }
    return table;
  }
  static Floats Byte(Ints words, int index, const ByteTable& table) {
    return _mm512_cvtepi32_ps(_mm512_shuffle_epi8(words, table.shuffle[index]));
  }

  // The nibble of a word that is column `index` of eight (packed_format.h) as a
  // float, by a table of the 16 that there are; the permutation looks at the
  // low four bits alone.
  using NibbleTable = Floats;
  static NibbleTable MakeNibbleTable(int offset) {
    alignas(64) float table[16];
    for (int i = 0; i < 16; ++i) table[i] = static_cast<float>(i - offset);
    return _mm512_load_ps(table);
  }
  static Floats Nibble(Ints words, int index, NibbleTable table) {
    return _mm512_permutexvar_ps(
        ShiftRight(words, 8 * (index % 4) + 4 * (index / 4)), table);
  }
};

}  // namespace lockstep::kernels
