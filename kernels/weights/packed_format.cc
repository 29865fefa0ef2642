#include "kernels/weights/packed_format.h"

#include <cmath>
#include <cstring>

namespace lockstep::kernels {
namespace {

template <typename T>
T Load(const uint8_t* bytes, int index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

float LoadHalf(const uint8_t* bytes, int index) {
  return HalfToFloat(Load<uint16_t>(bytes, index));
}

// Of the words from `nibbles` on; `col` of a block of 32.
int Nibble(const uint8_t* nibbles, int row, int col) {
  const uint32_t word = Load<uint32_t>(nibbles, col / 8 * kPanelRows + row);
  return word >> (8 * (col % 4) + 4 * (col / 4 % 2)) & 15;
}

// Of the words from `quads` on, with their offset.
int Byte(const uint8_t* quads, int row, int col) {
  return quads[(col / 4 * kPanelRows + row) * 4 + col % 4];
}

int UpperBit(const uint8_t* bits, int row, int col) {
  return Load<uint32_t>(bits, row) >> (8 * (col % 4) + col / 4) & 1;
}

int UpperPair(const uint8_t* pairs, int row, int col) {
  const uint32_t word = Load<uint32_t>(pairs, col / 16 * kPanelRows + row);
  return word >> (8 * (col % 4) + 2 * (col / 4 % 4)) & 3;
}

}  // namespace

PackedType PackedTypeOf(DType type, Arithmetic arithmetic) {
  const auto plain = [arithmetic](PackedType as_stored) {
    return arithmetic == Arithmetic::kFast ? PackedType::kInt16 : as_stored;
  };
  switch (type) {
    case DType::kF32:
      return plain(PackedType::kF32);
    case DType::kF16:
      return plain(PackedType::kF16);
    case DType::kBF16:
      return plain(PackedType::kBF16);
    case DType::kQ8_0:
      return PackedType::kQ8_0;
    case DType::kQ4_0:
      return PackedType::kQ4_0;
    case DType::kQ4_1:
      return PackedType::kQ4_1;
    case DType::kQ5_1:
      return PackedType::kQ5_1;
    case DType::kQ2_K:
      return PackedType::kQ2_K;
    case DType::kQ4_K:
      return PackedType::kQ4_K;
    case DType::kQ5_K:
      return PackedType::kQ5_K;
    case DType::kQ6_K:
      return PackedType::kQ6_K;
    // The same integers and scales in more bits.
    case DType::kQ5_0:
    case DType::kIQ4_NL:
      return PackedType::kQ8_0;
    case DType::kQ3_K:
      return PackedType::kQ6_K;
    case DType::kQ4_Z:
      return PackedType::kQ4_Z;
    // The same, with a scale of its own for each block of 32.
    case DType::kIQ4_XS:
    case DType::kMXFP4:
    case DType::kQ8_F:
      return PackedType::kQ8_F;
    // These have no layout that keeps their integers.
    case DType::kF8_E4M3:
    case DType::kI8:
    case DType::kI32:
    case DType::kI64:
      return plain(PackedType::kF32);
  }
  __builtin_unreachable();
}

PackedWeight UnpackWeight(PackedType type, const uint8_t* slice, int row,
                          int col) {
  const PackedFormat format = FormatOfPacked(type);
  const int i = col % 32;
  const int block = col % format.group_cols / 32;
  const uint8_t* group = slice + SliceBytes(type, col - 32 * block - i);
  const uint8_t* quants =
      group + format.header_bytes + block * format.block_bytes();
  // Blocks of the K types start with their scales.
  const uint8_t* nibbles = quants + 2 * kPanelRows;
  const uint8_t* upper = nibbles + 16 * kPanelRows;
  const float d = LoadHalf(group, row);
  switch (type) {
    case PackedType::kQ8_0:
      return {Byte(quants, row, i) - 128, d, 0};
    case PackedType::kQ4_0:
      return {Nibble(quants, row, i) - 8, d, 0};
    case PackedType::kQ4_1:
      return {Nibble(quants, row, i), d, LoadHalf(group, kPanelRows + row)};
    case PackedType::kQ5_1:
      return {Nibble(quants, row, i) |
                  UpperBit(quants + 16 * kPanelRows, row, i) << 4,
              d, LoadHalf(group, kPanelRows + row)};
    case PackedType::kQ2_K: {
      const uint8_t* scale = quants + i / 16 * kPanelRows + row;
      return {UpperPair(quants + 4 * kPanelRows, row, i), d * scale[0],
              -(LoadHalf(group, kPanelRows + row) * scale[2 * kPanelRows])};
    }
    case PackedType::kQ4_K:
    case PackedType::kQ5_K: {
      const int bit = type == PackedType::kQ5_K ? UpperBit(upper, row, i) : 0;
      return {Nibble(nibbles, row, i) | bit << 4, d * quants[row],
              -(LoadHalf(group, kPanelRows + row) * quants[kPanelRows + row])};
    }
    case PackedType::kQ6_K:
      return {(Nibble(nibbles, row, i) | UpperPair(upper, row, i) << 4) - 32,
              d * Load<int8_t>(quants, i / 16 * kPanelRows + row), 0};
    case PackedType::kInt16:
      return {Load<int16_t>(quants, (i / 2 * kPanelRows + row) * 2 + i % 2),
              BFloat16ToFloat(Load<uint16_t>(group, row)), 0};
    case PackedType::kQ4_Z:
      return {Nibble(quants, row, i), d, -(d * group[2 * kPanelRows + row])};
    case PackedType::kQ8_F:
      return {Byte(quants, row, i) - 128, Load<float>(group, row), 0};
    case PackedType::kF32:
    case PackedType::kF16:
    case PackedType::kBF16:
      break;
  }
  __builtin_unreachable();
}

float PackedValue(PackedType type, const uint8_t* slice, int row, int col) {
  const uint8_t* column = slice + SliceBytes(type, col);
  switch (type) {
    case PackedType::kF32:
      return Load<float>(column, row);
    case PackedType::kF16:
      return LoadHalf(column, row);
    case PackedType::kBF16:
      return BFloat16ToFloat(Load<uint16_t>(column, row));
    default:
      break;
  }
  const PackedWeight w = UnpackWeight(type, slice, row, col);
  return std::fma(w.scale, static_cast<float>(w.quant), w.min);
}

}  // namespace lockstep::kernels
