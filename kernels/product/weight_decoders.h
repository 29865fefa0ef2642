#pragma once

#include <cstdint>

#include "kernels/weights/packed_format.h"

namespace lockstep::kernels {

// One struct per packed type that turns a panel (packed_format.h) into vectors
// of fp32 weights in registers, for a vector type V (simd_*.h). Panels are read
// group by group, a group in runs of kRunCols columns that share their scales,
// a run in packets of kPacketCols columns:
//
//   const auto scales = D::LoadScales(group, run, v);    // v < V::kVectors
//   const auto packet = D::LoadPacket(group, run, n, v);
//   const auto w = D::Decode(scales, packet, i, D::MakeConstants());
//
// gives, for each of the vector's rows, the weight of column
// run·kRunCols + n·kPacketCols + i of the group.
struct NoConstants {};

// d, and what is added to d·q.
template <class V>
struct ScaleAndMin {
  typename V::Floats d;
  typename V::Floats min;
};

// Vectors of a group or block: of fp16, of bytes, of 32-bit words, the n-th
// from `p` on.
template <class V>
typename V::Floats HalfAt(const uint8_t* p, int n, int v) {
  return V::LoadHalf(p + 2 * (n * kPanelRows + v * V::kWidth));
}
template <class V>
const uint8_t* BytesAt(const uint8_t* p, int n, int v) {
  return p + n * kPanelRows + v * V::kWidth;
}
template <class V>
typename V::Ints WordsAt(const uint8_t* p, int n, int v) {
  return V::LoadInts(p + 4 * (n * kPanelRows + v * V::kWidth));
}

// The bytes of two quads, and what decodes them: w = d·byte + min, exact where
// w = d·(byte - offset) and min = -d·offset.
template <class V>
struct QuadsDecoder {
  static constexpr int kPacketCols = 8;
  using Constants = typename V::ByteTable;
  using Scales = ScaleAndMin<V>;
  struct Packet {
    typename V::Ints quad[2];
  };

  static Constants MakeConstants() { return V::MakeByteTable(); }
  static typename V::Floats Decode(const Scales& s, const Packet& q, int i,
                                   const Constants& table) {
    return V::Fma(s.d, V::Byte(q.quad[i / 4], i % 4, table), s.min);
  }
};

// Bytes with one scale.
template <class V, PackedType kType>
struct BytesDecoder : QuadsDecoder<V> {
  static constexpr PackedFormat kFormat = FormatOfPacked(kType);
  static constexpr int kRunCols = 32;

  static ScaleAndMin<V> LoadScales(const uint8_t* group, int, int v) {
    typename V::Floats d;
    if constexpr (kType == PackedType::kQ8_F) {
      d = V::Load(reinterpret_cast<const float*>(group) + v * V::kWidth);
    } else {
      d = HalfAt<V>(group, 0, v);
    }
    return {d, V::Mul(d, V::Set(-128))};
  }
  static typename QuadsDecoder<V>::Packet LoadPacket(const uint8_t* group, int,
                                                     int n, int v) {
    const uint8_t* quads = group + kFormat.header_bytes;
    return {WordsAt<V>(quads, 2 * n, v), WordsAt<V>(quads, 2 * n + 1, v)};
  }
};

template <class V>
using Q8Decoder = BytesDecoder<V, PackedType::kQ8_0>;
template <class V>
using Q8FDecoder = BytesDecoder<V, PackedType::kQ8_F>;

// Nibbles with a scale and a minimum.
template <class V>
struct NibbleDecoder {
  static constexpr int kRunCols = 32;
  static constexpr int kPacketCols = 8;
  using Constants = typename V::NibbleTable;
  using Scales = ScaleAndMin<V>;
  using Packet = typename V::Ints;

  static Constants MakeConstants() { return V::MakeNibbleTable(0); }
  static typename V::Floats Decode(const Scales& s, Packet q, int i,
                                   Constants table) {
    return V::Fma(s.d, V::Nibble(q, i, table), s.min);
  }
};

template <class V>
struct Q4_0Decoder {
  static constexpr PackedFormat kFormat = FormatOfPacked(PackedType::kQ4_0);
  static constexpr int kRunCols = 32;
  static constexpr int kPacketCols = 8;
  using Constants = typename V::NibbleTable;
  using Scales = typename V::Floats;
  using Packet = typename V::Ints;

  static Constants MakeConstants() { return V::MakeNibbleTable(8); }
  static Scales LoadScales(const uint8_t* group, int, int v) {
    return HalfAt<V>(group, 0, v);
  }
  static Packet LoadPacket(const uint8_t* group, int, int n, int v) {
    return WordsAt<V>(group + kFormat.header_bytes, n, v);
  }
  static typename V::Floats Decode(Scales d, Packet q, int i, Constants table) {
    return V::Mul(d, V::Nibble(q, i, table));
  }
};

template <class V>
struct Q4_1Decoder : NibbleDecoder<V> {
  static constexpr PackedFormat kFormat = FormatOfPacked(PackedType::kQ4_1);

  static ScaleAndMin<V> LoadScales(const uint8_t* group, int, int v) {
    return {HalfAt<V>(group, 0, v), HalfAt<V>(group, 1, v)};
  }
  static typename V::Ints LoadPacket(const uint8_t* group, int, int n, int v) {
    return WordsAt<V>(group + kFormat.header_bytes, n, v);
  }
};

template <class V>
struct Q4ZDecoder : NibbleDecoder<V> {
  static constexpr PackedFormat kFormat = FormatOfPacked(PackedType::kQ4_Z);

  static ScaleAndMin<V> LoadScales(const uint8_t* group, int, int v) {
    const typename V::Floats d = HalfAt<V>(group, 0, v);
    const typename V::Floats zero = V::LoadUint8(BytesAt<V>(group, 2, v));
    return {d, V::Sub(V::Zero(), V::Mul(d, zero))};
  }
  static typename V::Ints LoadPacket(const uint8_t* group, int, int n, int v) {
    return WordsAt<V>(group + kFormat.header_bytes, n, v);
  }
};

// Quads 2·n and 2·n + 1 of nibbles and the fifth bits that follow them.
template <class V>
typename QuadsDecoder<V>::Packet FiveBits(const uint8_t* nibbles, int n,
                                          int v) {
  const typename V::Ints low = WordsAt<V>(nibbles, n, v);
  const typename V::Ints bits = V::ShiftRight(WordsAt<V>(nibbles, 4, v), 2 * n);
  return {
      V::OrMasked(V::And(low, 0x0f0f0f0f), V::ShiftLeft(bits, 4), 0x10101010),
      V::OrMasked(V::And(V::ShiftRight(low, 4), 0x0f0f0f0f),
                  V::ShiftLeft(bits, 3), 0x10101010)};
}

template <class V>
struct Q5_1Decoder : QuadsDecoder<V> {
  static constexpr PackedFormat kFormat = FormatOfPacked(PackedType::kQ5_1);
  static constexpr int kRunCols = 32;

  static ScaleAndMin<V> LoadScales(const uint8_t* group, int, int v) {
    return {HalfAt<V>(group, 0, v), HalfAt<V>(group, 1, v)};
  }
  static typename QuadsDecoder<V>::Packet LoadPacket(const uint8_t* group, int,
                                                     int n, int v) {
    return FiveBits<V>(group + kFormat.header_bytes, n, v);
  }
};

// Groups of 256 columns: a header, then eight blocks.
template <PackedType kType>
const uint8_t* BlockOf(const uint8_t* group, int block) {
  constexpr PackedFormat kFormat = FormatOfPacked(kType);
  return group + kFormat.header_bytes + block * kFormat.block_bytes();
}

// d·scale and -dmin·min, of the n-th and m-th vector of bytes of a block of
// Q2_K, Q4_K or Q5_K; both are exact.
template <class V>
ScaleAndMin<V> LoadScaledMin(const uint8_t* group, const uint8_t* block, int n,
                             int m, int v) {
  const typename V::Floats scale = V::LoadUint8(BytesAt<V>(block, n, v));
  const typename V::Floats min = V::LoadUint8(BytesAt<V>(block, m, v));
  return {V::Mul(HalfAt<V>(group, 0, v), scale),
          V::Sub(V::Zero(), V::Mul(HalfAt<V>(group, 1, v), min))};
}

template <class V>
struct Q4KDecoder : NibbleDecoder<V> {
  static constexpr PackedFormat kFormat = FormatOfPacked(PackedType::kQ4_K);

  static ScaleAndMin<V> LoadScales(const uint8_t* group, int run, int v) {
    return LoadScaledMin<V>(group, BlockOf<PackedType::kQ4_K>(group, run), 0, 1,
                            v);
  }
  static typename V::Ints LoadPacket(const uint8_t* group, int run, int n,
                                     int v) {
    const uint8_t* block = BlockOf<PackedType::kQ4_K>(group, run);
    return WordsAt<V>(block + 2 * kPanelRows, n, v);
  }
};

template <class V>
struct Q5KDecoder : QuadsDecoder<V> {
  static constexpr PackedFormat kFormat = FormatOfPacked(PackedType::kQ5_K);
  static constexpr int kRunCols = 32;

  static ScaleAndMin<V> LoadScales(const uint8_t* group, int run, int v) {
    return LoadScaledMin<V>(group, BlockOf<PackedType::kQ5_K>(group, run), 0, 1,
                            v);
  }
  static typename QuadsDecoder<V>::Packet LoadPacket(const uint8_t* group,
                                                     int run, int n, int v) {
    const uint8_t* nibbles =
        BlockOf<PackedType::kQ5_K>(group, run) + 2 * kPanelRows;
    return FiveBits<V>(nibbles, n, v);
  }
};

// A run is half a block.
template <class V>
struct Q2KDecoder : QuadsDecoder<V> {
  static constexpr PackedFormat kFormat = FormatOfPacked(PackedType::kQ2_K);
  static constexpr int kRunCols = 16;

  static ScaleAndMin<V> LoadScales(const uint8_t* group, int run, int v) {
    return LoadScaledMin<V>(group, BlockOf<PackedType::kQ2_K>(group, run / 2),
                            run % 2, 2 + run % 2, v);
  }
  static typename QuadsDecoder<V>::Packet LoadPacket(const uint8_t* group,
                                                     int run, int n, int v) {
    const uint8_t* pairs =
        BlockOf<PackedType::kQ2_K>(group, run / 2) + 4 * kPanelRows;
    const typename V::Ints words =
        V::ShiftRight(WordsAt<V>(pairs, run % 2, v), 4 * n);
    return {V::And(words, 0x03030303),
            V::And(V::ShiftRight(words, 2), 0x03030303)};
  }
};

// The same.
template <class V>
struct Q6KDecoder : QuadsDecoder<V> {
  static constexpr PackedFormat kFormat = FormatOfPacked(PackedType::kQ6_K);
  static constexpr int kRunCols = 16;

  static ScaleAndMin<V> LoadScales(const uint8_t* group, int run, int v) {
    const uint8_t* block = BlockOf<PackedType::kQ6_K>(group, run / 2);
    const typename V::Floats scale = V::Mul(
        HalfAt<V>(group, 0, v), V::LoadInt8(BytesAt<V>(block, run % 2, v)));
    return {scale, V::Mul(scale, V::Set(-32))};
  }
  static typename QuadsDecoder<V>::Packet LoadPacket(const uint8_t* group,
                                                     int run, int n, int v) {
    const uint8_t* nibbles =
        BlockOf<PackedType::kQ6_K>(group, run / 2) + 2 * kPanelRows;
    const typename V::Ints low = WordsAt<V>(nibbles, run % 2 * 2 + n, v);
    const typename V::Ints pairs =
        V::ShiftRight(WordsAt<V>(nibbles, 4 + run % 2, v), 4 * n);
    return {V::OrMasked(V::And(low, 0x0f0f0f0f), V::ShiftLeft(pairs, 4),
                        0x30303030),
            V::OrMasked(V::And(V::ShiftRight(low, 4), 0x0f0f0f0f),
                        V::ShiftLeft(pairs, 2), 0x30303030)};
  }
};

// F16 and BF16: a group is one column.
template <class V, PackedType kType>
struct HalfDecoder {
  static constexpr PackedFormat kFormat = FormatOfPacked(kType);
  static constexpr int kRunCols = 1;
  static constexpr int kPacketCols = 1;
  using Constants = NoConstants;
  using Scales = NoConstants;
  using Packet = typename V::Floats;

  static Constants MakeConstants() { return {}; }
  static Scales LoadScales(const uint8_t*, int, int) { return {}; }
  static Packet LoadPacket(const uint8_t* group, int, int, int v) {
    const uint8_t* values = group + 2 * v * V::kWidth;
    return kType == PackedType::kF16 ? V::LoadHalf(values)
                                     : V::LoadBFloat16(values);
  }
  static typename V::Floats Decode(Scales, Packet value, int, Constants) {
    return value;
  }
};

}  // namespace lockstep::kernels
