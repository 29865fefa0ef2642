#pragma once

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/packed_format.h"

namespace lockstep::kernels {

// One struct per stored type that turns a panel (packed_format.h) into vectors
// of fp32 weights in registers, for a vector type V (simd_*.h). Panels are read
// group by group, a group in packets of kPacketCols columns:
//
//   const auto scales = D::LoadScales(group, v);         // v < V::kVectors
//   const auto packet = D::LoadPacket(group, n, v);
//   const auto w = D::Decode(scales, packet, i, D::MakeConstants());
//
// gives, for each of the vector's rows, the weight of column
// n·kPacketCols + i of the group.
struct NoConstants {};

// Integers of 8 bits times a scale, which the two types keep differently.
template <class V, DType kType>
struct Int8Decoder {
  static constexpr PackedFormat kFormat = FormatOfPacked(kType);
  static constexpr int kPacketCols = 8;
  using Constants = NoConstants;
  using Scales = typename V::Floats;
  using Packet = const uint8_t*;

  static Constants MakeConstants() { return {}; }
  static Packet LoadPacket(const uint8_t* group, int n, int v) {
    return group + kFormat.quants + n * kPacketCols * kPanelRows +
           v * V::kWidth;
  }
  static typename V::Floats Decode(Scales d, Packet q, int i, Constants) {
    return V::Mul(d, V::LoadInt8(q + i * kPanelRows));
  }
};

template <class V>
struct Q8Decoder : Int8Decoder<V, DType::kQ8_0> {
  static typename V::Floats LoadScales(const uint8_t* group, int v) {
    return V::LoadHalf(group + 2 * v * V::kWidth);
  }
};

template <class V>
struct Q6KDecoder : Int8Decoder<V, DType::kQ6_K> {
  static typename V::Floats LoadScales(const uint8_t* group, int v) {
    return V::Load(reinterpret_cast<const float*>(group) + v * V::kWidth);
  }
};

template <class V>
struct Q4_0Decoder {
  static constexpr PackedFormat kFormat = FormatOfPacked(DType::kQ4_0);
  static constexpr int kPacketCols = 8;
  using Constants = typename V::NibbleTable;
  using Scales = typename V::Floats;
  using Packet = typename V::Ints;

  static Constants MakeConstants() { return V::MakeNibbleTable(8); }
  static Scales LoadScales(const uint8_t* group, int v) {
    return V::LoadHalf(group + 2 * v * V::kWidth);
  }
  static Packet LoadPacket(const uint8_t* group, int n, int v) {
    return V::LoadInts(group + kFormat.quants + 4 * n * kPanelRows +
                       4 * v * V::kWidth);
  }
  static typename V::Floats Decode(Scales d, Packet q, int i, Constants table) {
    return V::Mul(d, V::Nibble(q, i, table));
  }
};

template <class V>
struct Q4_1Decoder {
  static constexpr PackedFormat kFormat = FormatOfPacked(DType::kQ4_1);
  static constexpr int kPacketCols = 8;
  using Constants = typename V::NibbleTable;
  struct Scales {
    typename V::Floats d;
    typename V::Floats m;
  };
  using Packet = typename V::Ints;

  static Constants MakeConstants() { return V::MakeNibbleTable(0); }
  static Scales LoadScales(const uint8_t* group, int v) {
    const uint8_t* d = group + 2 * v * V::kWidth;
    return {V::LoadHalf(d), V::LoadHalf(d + 2 * kPanelRows)};
  }
  static Packet LoadPacket(const uint8_t* group, int n, int v) {
    return V::LoadInts(group + kFormat.quants + 4 * n * kPanelRows +
                       4 * v * V::kWidth);
  }
  static typename V::Floats Decode(const Scales& s, Packet q, int i,
                                   Constants table) {
    return V::Fma(s.d, V::Nibble(q, i, table), s.m);
  }
};

// F16 and BF16: a group is one column.
template <class V, DType kType>
struct HalfDecoder {
  static constexpr PackedFormat kFormat = FormatOfPacked(kType);
  static constexpr int kPacketCols = 1;
  using Constants = NoConstants;
  using Scales = NoConstants;
  using Packet = typename V::Floats;

  static Constants MakeConstants() { return {}; }
  static Scales LoadScales(const uint8_t*, int) { return {}; }
  static Packet LoadPacket(const uint8_t* group, int, int v) {
    const uint8_t* values = group + 2 * v * V::kWidth;
    return kType == DType::kF16 ? V::LoadHalf(values) : V::LoadBFloat16(values);
  }
  static typename V::Floats Decode(Scales, Packet value, int, Constants) {
    return value;
  }
};

}  // namespace lockstep::kernels
