#include "kernels/packed_block.h"

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

// The integers of the words from `nibbles` on.
void UnpackNibbles(const uint8_t* nibbles, int row, int offset, int* quant) {
  for (int i = 0; i < kQuantBlock; ++i) {
    const uint32_t word = Load<uint32_t>(nibbles, i / 8 * kPanelRows + row);
    quant[i] =
        static_cast<int>(word >> (8 * (i % 4) + 4 * (i / 4 % 2)) & 15) - offset;
  }
}

void AddUpperBits(const uint8_t* bits, int row, int* quant) {
  const uint32_t word = Load<uint32_t>(bits, row);
  for (int i = 0; i < kQuantBlock; ++i) {
    quant[i] += static_cast<int>(word >> (8 * (i % 4) + i / 4) & 1) << 4;
  }
}

void AddUpperPairs(const uint8_t* pairs, int row, int* quant) {
  for (int i = 0; i < kQuantBlock; ++i) {
    const uint32_t word = Load<uint32_t>(pairs, i / 16 * kPanelRows + row);
    quant[i] += static_cast<int>(word >> (8 * (i % 4) + 2 * (i / 4 % 4)) & 3)
                << 4;
  }
}

}  // namespace

PackedBlock UnpackPackedBlock(PackedType type, const uint8_t* slice, int row,
                              int block) {
  const PackedFormat format = FormatOfPacked(type);
  const int blocks = format.group_cols / kQuantBlock;  // of a group
  const uint8_t* group =
      slice + static_cast<ptrdiff_t>(block / blocks) * format.group_bytes;
  const uint8_t* in_group =
      group + format.header_bytes +
      block % blocks * ((format.group_bytes - format.header_bytes) / blocks);
  const uint8_t* nibbles = in_group + 2 * kPanelRows;  // of the K types
  PackedBlock out = {};
  out.fold_cols = kQuantBlock;
  out.scale[0] = LoadHalf(group, row);
  switch (type) {
    case PackedType::kQ8_0:
      for (int i = 0; i < kQuantBlock; ++i) {
        out.quant[i] = in_group[(i / 4 * kPanelRows + row) * 4 + i % 4] - 128;
      }
      break;
    case PackedType::kQ4_0:
      UnpackNibbles(in_group, row, 8, out.quant);
      break;
    case PackedType::kQ4_1:
      UnpackNibbles(in_group, row, 0, out.quant);
      out.has_min = true;
      out.min = LoadHalf(group, kPanelRows + row);
      break;
    case PackedType::kQ4_K:
    case PackedType::kQ5_K:
      UnpackNibbles(nibbles, row, 0, out.quant);
      if (type == PackedType::kQ5_K) {
        AddUpperBits(nibbles + 16 * kPanelRows, row, out.quant);
      }
      out.has_min = true;
      out.min =
          -(LoadHalf(group, kPanelRows + row) * in_group[kPanelRows + row]);
      out.scale[0] *= in_group[row];
      break;
    case PackedType::kQ6_K:
      UnpackNibbles(nibbles, row, 32, out.quant);
      AddUpperPairs(nibbles + 16 * kPanelRows, row, out.quant);
      out.fold_cols = kQuantBlock / 2;
      out.scale[1] = out.scale[0] * Load<int8_t>(in_group, kPanelRows + row);
      out.scale[0] *= Load<int8_t>(in_group, row);
      break;
    case PackedType::kInt16:
      out.scale[0] = BFloat16ToFloat(Load<uint16_t>(group, row));
      for (int i = 0; i < kQuantBlock; ++i) {
        out.quant[i] =
            Load<int16_t>(in_group, (i / 2 * kPanelRows + row) * 2 + i % 2);
      }
      break;
    case PackedType::kF32:
    case PackedType::kF16:
    case PackedType::kBF16:
      break;  // packed for the strict product
  }
  return out;
}

}  // namespace lockstep::kernels
