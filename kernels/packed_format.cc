#include "kernels/packed_format.h"

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

int UpperBit(const uint8_t* bits, int row, int col) {
  return Load<uint32_t>(bits, row) >> (8 * (col % 4) + col / 4) & 1;
}

int UpperPair(const uint8_t* pairs, int row, int col) {
  const uint32_t word = Load<uint32_t>(pairs, col / 16 * kPanelRows + row);
  return word >> (8 * (col % 4) + 2 * (col / 4 % 4)) & 3;
}

// Column `col` of a group of Q4_K or Q5_K, whose blocks differ by the bits.
float ValueWithScaledMin(PackedType type, const uint8_t* group, int row,
                         int col) {
  const PackedFormat format = FormatOfPacked(type);
  const uint8_t* block =
      group + format.header_bytes +
      col / 32 * ((format.group_bytes - format.header_bytes) / 8);
  const uint8_t* nibbles = block + 2 * kPanelRows;
  int q = Nibble(nibbles, row, col % 32);
  if (type == PackedType::kQ5_K) {
    q |= UpperBit(nibbles + 16 * kPanelRows, row, col % 32) << 4;
  }
  const float scale = LoadHalf(group, row) * block[row];
  const float min = LoadHalf(group, kPanelRows + row) * block[kPanelRows + row];
  return std::fma(scale, static_cast<float>(q), -min);
}

float ValueOfQ6K(const uint8_t* group, int row, int col) {
  const PackedFormat format = FormatOfPacked(PackedType::kQ6_K);
  const uint8_t* block =
      group + format.header_bytes +
      col / 32 * ((format.group_bytes - format.header_bytes) / 8);
  const uint8_t* nibbles = block + 2 * kPanelRows;
  const uint8_t* pairs = nibbles + 16 * kPanelRows;
  const int q = Nibble(nibbles, row, col % 32) | UpperPair(pairs, row, col % 32)
                                                     << 4;
  const int scale = Load<int8_t>(block, col % 32 / 16 * kPanelRows + row);
  return LoadHalf(group, row) * scale * (q - 32);
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
    case DType::kQ4_K:
      return PackedType::kQ4_K;
    case DType::kQ5_K:
      return PackedType::kQ5_K;
    case DType::kQ6_K:
      return PackedType::kQ6_K;
  }
  __builtin_unreachable();
}

float PackedValue(PackedType type, const uint8_t* slice, int row, int col) {
  const PackedFormat format = FormatOfPacked(type);
  const int i = col % format.group_cols;
  const uint8_t* group = slice + SliceBytes(type, col - i);
  const uint8_t* quants = group + format.header_bytes;
  switch (type) {
    case PackedType::kF32:
      return Load<float>(group, row);
    case PackedType::kF16:
      return LoadHalf(group, row);
    case PackedType::kBF16:
      return BFloat16ToFloat(Load<uint16_t>(group, row));
    case PackedType::kQ8_0:
      return LoadHalf(group, row) *
             (quants[(i / 4 * kPanelRows + row) * 4 + i % 4] - 128);
    case PackedType::kQ4_0:
      return LoadHalf(group, row) * (Nibble(quants, row, i) - 8);
    case PackedType::kQ4_1:
      return std::fma(LoadHalf(group, row),
                      static_cast<float>(Nibble(quants, row, i)),
                      LoadHalf(group, kPanelRows + row));
    case PackedType::kQ4_K:
    case PackedType::kQ5_K:
      return ValueWithScaledMin(type, group, row, i);
    case PackedType::kQ6_K:
      return ValueOfQ6K(group, row, i);
    case PackedType::kInt16:
      return BFloat16ToFloat(Load<uint16_t>(group, row)) *
             Load<int16_t>(quants, (i / 2 * kPanelRows + row) * 2 + i % 2);
  }
  __builtin_unreachable();
}

}  // namespace lockstep::kernels
