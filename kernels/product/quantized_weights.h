#pragma once

#include <cstdint>

#include "kernels/weights/packed_format.h"

namespace lockstep::kernels {

// One struct per packed type that hands the integers of a panel
// (packed_format.h) to the fast product, for a vector type V (integers_*.h). A
// group is a header and blocks of 32 columns, a block one or two folds of
// kFoldCols columns that share a scale. It is read in quads of columns
// 4g … 4g + 3 (pairs, for Int16), 16 rows side by side, v counting the vectors
// that make 16 lanes:
//
//   Quad(block, g, v)      bytes: weight plus kOffset, 0 … 255 (63, if kSmall)
//   Scale(header, block, fold, v)
//   Min(header, block, fold, v)  added to each weight, where kHasMin
template <class V>
struct Q8_0Weights {
  static constexpr PackedType kType = PackedType::kQ8_0;
  static constexpr int kFoldCols = 32, kOffset = 128;
  static constexpr bool kHasMin = false, kSmall = false;

  static typename V::Ints Quad(const uint8_t* block, int g, int v) {
    return V::LoadInts(block + 64 * g + 4 * v * V::kWidth);
  }
  static typename V::Floats Scale(const uint8_t* header, const uint8_t*, int,
                                  int v) {
    return V::LoadHalf(header + 2 * v * V::kWidth);
  }
};

// The same with a scale in fp32.
template <class V>
struct Q8_FWeights : Q8_0Weights<V> {
  static constexpr PackedType kType = PackedType::kQ8_F;

  static typename V::Floats Scale(const uint8_t* header, const uint8_t*, int,
                                  int v) {
    return V::Load(reinterpret_cast<const float*>(header) + v * V::kWidth);
  }
};

// The low four bits of a quad.
template <class V>
typename V::Ints NibbleQuad(const uint8_t* nibbles, int g, int v) {
  const typename V::Ints words =
      V::LoadInts(nibbles + 64 * (g / 2) + 4 * v * V::kWidth);
  return V::And(g % 2 == 0 ? words : V::template ShiftRight<4>(words),
                V::SetInts(0x0f0f0f0f));
}

template <class V>
struct Q4_0Weights {
  static constexpr PackedType kType = PackedType::kQ4_0;
  static constexpr int kFoldCols = 32, kOffset = 8;
  static constexpr bool kHasMin = false, kSmall = true;

  static typename V::Ints Quad(const uint8_t* block, int g, int v) {
    return NibbleQuad<V>(block, g, v);
  }
  static typename V::Floats Scale(const uint8_t* header, const uint8_t*, int,
                                  int v) {
    return V::LoadHalf(header + 2 * v * V::kWidth);
  }
};

template <class V>
struct Q4_1Weights : Q4_0Weights<V> {
  static constexpr PackedType kType = PackedType::kQ4_1;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true;

  static typename V::Floats Min(const uint8_t* header, const uint8_t*, int,
                                int v) {
    return V::LoadHalf(header + 2 * kPanelRows + 2 * v * V::kWidth);
  }
};

template <class V>
struct Q4_ZWeights : Q4_0Weights<V> {
  static constexpr PackedType kType = PackedType::kQ4_Z;
  static constexpr int kOffset = 0;
  static constexpr bool kHasMin = true;

  static typename V::Floats Min(const uint8_t* header, const uint8_t*, int,
                                int v) {
    const auto d = V::LoadHalf(header + 2 * v * V::kWidth);
    const auto zero = V::LoadUint8(header + 2 * kPanelRows + v * V::kWidth);
    return V::Sub(V::Zero(), V::Mul(d, zero));
  }
};

// The fifth bits of a quad, in their place.
template <class V>
typename V::Ints FifthBits(const uint8_t* words, int g, int v) {
  const auto bits = V::LoadInts(words + 4 * v * V::kWidth);
  return V::template ShiftLeft<4>(
      V::And(V::ShiftRightBy(bits, g), V::SetInts(0x01010101)));
}

template <class V>
struct Q5_1Weights : Q4_1Weights<V> {
  static constexpr PackedType kType = PackedType::kQ5_1;

  static typename V::Ints Quad(const uint8_t* block, int g, int v) {
    return V::Or(NibbleQuad<V>(block, g, v),
                 FifthBits<V>(block + 16 * kPanelRows, g, v));
  }
};

// Q4_K and the part of Q5_K that is like it.
template <class V>
struct Q4_KWeights {
  static constexpr PackedType kType = PackedType::kQ4_K;
  static constexpr int kFoldCols = 32, kOffset = 0;
  static constexpr bool kHasMin = true, kSmall = true;

  static typename V::Ints Quad(const uint8_t* block, int g, int v) {
    return NibbleQuad<V>(block + 2 * kPanelRows, g, v);
  }
  static typename V::Floats Scale(const uint8_t* header, const uint8_t* block,
                                  int, int v) {
    return V::Mul(V::LoadHalf(header + 2 * v * V::kWidth),
                  V::LoadUint8(block + v * V::kWidth));
  }
  static typename V::Floats Min(const uint8_t* header, const uint8_t* block,
                                int, int v) {
    const auto min = V::LoadHalf(header + 2 * kPanelRows + 2 * v * V::kWidth);
    const auto factor = V::LoadUint8(block + kPanelRows + v * V::kWidth);
    return V::Sub(V::Zero(), V::Mul(min, factor));
  }
};

template <class V>
struct Q5_KWeights : Q4_KWeights<V> {
  static constexpr PackedType kType = PackedType::kQ5_K;

  static typename V::Ints Quad(const uint8_t* block, int g, int v) {
    return V::Or(NibbleQuad<V>(block + 2 * kPanelRows, g, v),
                 FifthBits<V>(block + 18 * kPanelRows, g, v));
  }
};

// Pairs of bits of a quad, in the low ones of its bytes.
template <class V>
typename V::Ints PairQuad(const uint8_t* words, int g, int v) {
  const auto pairs = V::LoadInts(words + 64 * (g / 4) + 4 * v * V::kWidth);
  return V::And(V::ShiftRightBy(pairs, 2 * (g % 4)), V::SetInts(0x03030303));
}

template <class V>
struct Q2_KWeights {
  static constexpr PackedType kType = PackedType::kQ2_K;
  static constexpr int kFoldCols = 16, kOffset = 0;
  static constexpr bool kHasMin = true, kSmall = true;

  static typename V::Ints Quad(const uint8_t* block, int g, int v) {
    return PairQuad<V>(block + 4 * kPanelRows, g, v);
  }
  static typename V::Floats Scale(const uint8_t* header, const uint8_t* block,
                                  int fold, int v) {
    return V::Mul(V::LoadHalf(header + 2 * v * V::kWidth),
                  V::LoadUint8(block + fold * kPanelRows + v * V::kWidth));
  }
  static typename V::Floats Min(const uint8_t* header, const uint8_t* block,
                                int fold, int v) {
    const auto min = V::LoadHalf(header + 2 * kPanelRows + 2 * v * V::kWidth);
    const auto factor =
        V::LoadUint8(block + (2 + fold) * kPanelRows + v * V::kWidth);
    return V::Sub(V::Zero(), V::Mul(min, factor));
  }
};

template <class V>
struct Q6_KWeights {
  static constexpr PackedType kType = PackedType::kQ6_K;
  static constexpr int kFoldCols = 16, kOffset = 32;
  static constexpr bool kHasMin = false, kSmall = true;

  static typename V::Ints Quad(const uint8_t* block, int g, int v) {
    const uint8_t* nibbles = block + 2 * kPanelRows;
    const auto pair = PairQuad<V>(nibbles + 16 * kPanelRows, g, v);
    return V::Or(NibbleQuad<V>(nibbles, g, v), V::template ShiftLeft<4>(pair));
  }
  static typename V::Floats Scale(const uint8_t* header, const uint8_t* block,
                                  int fold, int v) {
    return V::Mul(V::LoadHalf(header + 2 * v * V::kWidth),
                  V::LoadInt8(block + fold * kPanelRows + v * V::kWidth));
  }
};

// Pairs of 14-bit integers.
template <class V>
struct Int16Weights {
  static constexpr PackedType kType = PackedType::kInt16;
  static constexpr int kFoldCols = 32;
  static constexpr bool kHasMin = false;

  static typename V::Ints Pair(const uint8_t* block, int g, int v) {
    return V::LoadInts(block + 64 * g + 4 * v * V::kWidth);
  }
  static typename V::Floats Scale(const uint8_t* header, const uint8_t*, int,
                                  int v) {
    return V::LoadBFloat16(header + 2 * v * V::kWidth);
  }
};

}  // namespace lockstep::kernels
