#include "kernels/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace lockstep::kernels {
namespace {

struct Format {
  const char* name;
  int block_values;
  int block_bytes;
};

constexpr Format kFormats[kNumDTypes] = {
    {"F32", 1, 4},    {"F16", 1, 2},    {"BF16", 1, 2},     {"Q8_0", 32, 34},
    {"Q4_0", 32, 18}, {"Q4_1", 32, 20}, {"Q6_K", 256, 210},
};

const Format& FormatOf(DType type) {
  return kFormats[static_cast<uint8_t>(type)];
}

uint16_t Load16(const uint8_t* bytes) {
  uint16_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// Nibble j of the first half of a block is the low one of byte j, of the
// second half the high one.
void UnpackNibbles(const uint8_t* nibbles, int offset, int8_t* quant) {
  for (int j = 0; j < 16; ++j) {
    quant[j] = static_cast<int8_t>((nibbles[j] & 15) - offset);
    quant[j + 16] = static_cast<int8_t>((nibbles[j] >> 4) - offset);
  }
}

// Q6_K: 128 bytes of low nibbles, 64 of high pairs of bits, 16 scales, d. Each
// half block of 128 values takes 64, 32 and 8 of them.
void UnpackQ6K(const uint8_t* block, QuantBlock* out) {
  const float d = HalfToFloat(Load16(block + 208));
  for (int i = 0; i < 16; ++i) {
    out->scale[i] = d * static_cast<int8_t>(block[192 + i]);
  }
  for (int half = 0; half < 2; ++half) {
    const uint8_t* low = block + 64 * half;
    const uint8_t* high = block + 128 + 32 * half;
    int8_t* quant = out->quant + 128 * half;
    for (int part = 0; part < 4; ++part) {
      for (int i = 0; i < 32; ++i) {
        const uint8_t byte = low[i + 32 * (part & 1)];
        const int nibble = part < 2 ? byte & 15 : byte >> 4;
        const int pair = (high[i] >> (2 * part)) & 3;
        quant[32 * part + i] = static_cast<int8_t>((nibble | pair << 4) - 32);
      }
    }
  }
}

template <typename Convert>
void DecodeHalves(const uint8_t* row, int64_t cols, Convert convert,
                  float* out) {
  for (int64_t i = 0; i < cols; ++i) out[i] = convert(Load16(row + 2 * i));
}

}  // namespace

int BlockValues(DType type) { return FormatOf(type).block_values; }

int BlockBytes(DType type) { return FormatOf(type).block_bytes; }

size_t RowBytes(DType type, int64_t cols) {
  return static_cast<size_t>(cols / BlockValues(type)) * BlockBytes(type);
}

const char* DTypeName(DType type) { return FormatOf(type).name; }

void UnpackBlock(DType type, const uint8_t* block, QuantBlock* out) {
  out->min = 0;
  if (type == DType::kQ6_K) {
    out->scale_values = 16;
    UnpackQ6K(block, out);
    return;
  }
  out->scale_values = 32;
  out->scale[0] = HalfToFloat(Load16(block));
  switch (type) {
    case DType::kQ8_0:
      std::memcpy(out->quant, block + 2, 32);
      break;
    case DType::kQ4_0:
      UnpackNibbles(block + 2, 8, out->quant);
      break;
    case DType::kQ4_1:
      out->min = HalfToFloat(Load16(block + 2));
      UnpackNibbles(block + 4, 0, out->quant);
      break;
    default:
      break;
  }
}

void DecodeRow(DType type, const void* row, int64_t cols, float* out) {
  const uint8_t* bytes = static_cast<const uint8_t*>(row);
  switch (type) {
    case DType::kF32:
      std::memcpy(out, row, cols * sizeof(float));
      return;
    case DType::kF16:
      DecodeHalves(bytes, cols, HalfToFloat, out);
      return;
    case DType::kBF16:
      DecodeHalves(bytes, cols, BFloat16ToFloat, out);
      return;
    default:
      break;
  }
  const int values = BlockValues(type);
  QuantBlock block;
  for (int64_t begin = 0; begin < cols; begin += values) {
    UnpackBlock(type, bytes, &block);
    bytes += BlockBytes(type);
    for (int i = 0; i < values; ++i) {
      out[begin + i] = std::fma(block.scale[i / block.scale_values],
                                static_cast<float>(block.quant[i]), block.min);
    }
  }
}

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) {  // infinity, NaN
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  }
  // The bits moved into place read as value·2^-112, also when subnormal.
  const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace lockstep::kernels
