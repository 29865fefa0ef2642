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

template <typename T>
void Store(uint8_t* bytes, int index, T value) {
  std::memcpy(bytes + index * sizeof(T), &value, sizeof(T));
}

void PackPlainRow(const uint8_t* source, int value_bytes, int cols, int row,
                  uint8_t* panel) {
  for (int col = 0; col < cols; ++col) {
    std::memcpy(
        panel + (static_cast<size_t>(col) * kPanelRows + row) * value_bytes,
        source + static_cast<size_t>(col) * value_bytes, value_bytes);
  }
}

void PackBytes(const int8_t* quant, int count, int row, uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    out[i * kPanelRows + row] = static_cast<uint8_t>(quant[i]);
  }
}

// `nibbles` are a block's 16 bytes as stored.
void PackNibbles(const uint8_t* nibbles, int row, uint8_t* out) {
  for (int g = 0; g < 4; ++g) {
    uint32_t word = 0;
    for (int i = 0; i < 8; ++i) {
      const int col = 8 * g + i;
      const uint32_t nibble =
          col < 16 ? nibbles[col] & 15 : nibbles[col - 16] >> 4;
      word |= nibble << (4 * i);
    }
    Store(out, g * kPanelRows + row, word);
  }
}

void PackQ6KBlock(const uint8_t* source, int row, uint8_t* groups) {
  constexpr PackedFormat kFormat = FormatOfPacked(DType::kQ6_K);
  QuantBlock block;
  UnpackBlock(DType::kQ6_K, source, &block);
  for (int g = 0; g < 16; ++g) {
    uint8_t* group = groups + g * kFormat.group_bytes;
    Store(group, row, block.scale[g]);
    PackBytes(block.quant + 16 * g, 16, row, group + kFormat.quants);
  }
}

}  // namespace

size_t PanelBytes(DType type, int cols) {
  const PackedFormat format = FormatOfPacked(type);
  return static_cast<size_t>(cols / format.group_cols) * format.group_bytes;
}

void PackRow(DType type, const uint8_t* source, int cols, int row,
             uint8_t* panel) {
  if (BlockValues(type) == 1) {
    PackPlainRow(source, BlockBytes(type), cols, row, panel);
    return;
  }
  const PackedFormat format = FormatOfPacked(type);
  const int values = BlockValues(type);
  for (int col = 0; col < cols; col += values) {
    uint8_t* group = panel + PanelBytes(type, col);
    switch (type) {
      case DType::kQ8_0:
        std::memcpy(group + 2 * row, source, 2);
        PackBytes(reinterpret_cast<const int8_t*>(source + 2), 32, row,
                  group + format.quants);
        break;
      case DType::kQ4_0:
        std::memcpy(group + 2 * row, source, 2);
        PackNibbles(source + 2, row, group + format.quants);
        break;
      case DType::kQ4_1:
        std::memcpy(group + 2 * row, source, 2);
        std::memcpy(group + 2 * kPanelRows + 2 * row, source + 2, 2);
        PackNibbles(source + 4, row, group + format.quants);
        break;
      default:
        PackQ6KBlock(source, row, group);
        break;
    }
    source += BlockBytes(type);
  }
}

float PackedValue(DType type, const uint8_t* panel, int row, int col) {
  const PackedFormat format = FormatOfPacked(type);
  const int i = col % format.group_cols;
  const uint8_t* group = panel + PanelBytes(type, col - i);
  const uint8_t* quants = group + format.quants;
  const auto nibble = [&] {
    const uint32_t word = Load<uint32_t>(quants, (i / 8) * kPanelRows + row);
    return static_cast<int>(word >> (4 * (i % 8)) & 15);
  };
  const auto byte = [&] { return Load<int8_t>(quants, i * kPanelRows + row); };
  const auto d = [&] { return HalfToFloat(Load<uint16_t>(group, row)); };
  switch (type) {
    case DType::kF32:
      return Load<float>(group, row);
    case DType::kF16:
      return d();
    case DType::kBF16:
      return BFloat16ToFloat(Load<uint16_t>(group, row));
    case DType::kQ8_0:
      return d() * byte();
    case DType::kQ4_0:
      return d() * (nibble() - 8);
    case DType::kQ4_1:
      return std::fma(d(), static_cast<float>(nibble()),
                      HalfToFloat(Load<uint16_t>(group, kPanelRows + row)));
    case DType::kQ6_K:
      return Load<float>(group, row) * byte();
  }
  return 0;
}

}  // namespace lockstep::kernels
