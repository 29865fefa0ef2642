#include "kernels/weights/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

namespace lockstep::kernels {
namespace {

struct Format {
  const char* name;
  int block_values;
  int block_bytes;
};

constexpr Format kFormats[kNumDTypes] = {
    {"F32", 1, 4},      {"F16", 1, 2},      {"BF16", 1, 2},
    {"Q8_0", 32, 34},   {"Q4_0", 32, 18},   {"Q4_1", 32, 20},
    {"Q4_K", 256, 144}, {"Q5_K", 256, 176}, {"Q6_K", 256, 210},
};

const Format& FormatOf(DType type) {
  return kFormats[static_cast<uint8_t>(type)];
}

// The integers and factors behind a block of a quantized type: value i is
// fma(scale[i / scale_values], quant[i], min[i / 32]). All but the last
// addition is exact in fp32.
struct QuantBlock {
  int8_t quant[256];  // [BlockValues(type)] with the offset (8, 32) taken off
  float scale[16];
  float min[8];      // 0 but for Q4_1, Q4_K and Q5_K
  int scale_values;  // values that share a scale
};

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

// Q4_K and Q5_K: d, dmin, 12 bytes of scales and minima, in Q5_K 32 bytes of
// high bits (bit i for run i of 32 values), 128 of nibbles: 32 bytes hold a run
// in their low halves and the next in their high ones.
void UnpackQ4KOrQ5K(DType type, const uint8_t* block, QuantBlock* out) {
  const float d = HalfToFloat(Load16(block));
  const float dmin = HalfToFloat(Load16(block + 2));
  uint8_t scales[8], mins[8];
  UnpackScales6(block + 4, scales, mins);
  const uint8_t* high = block + 16;
  const uint8_t* nibbles = type == DType::kQ5_K ? high + 32 : high;
  for (int run = 0; run < 8; ++run) {
    out->scale[run] = d * scales[run];
    out->min[run] = -(dmin * mins[run]);
    for (int i = 0; i < 32; ++i) {
      const int nibble = nibbles[run / 2 * 32 + i] >> (run % 2 * 4) & 15;
      const int bit = type == DType::kQ5_K ? high[i] >> run & 1 : 0;
      out->quant[32 * run + i] = static_cast<int8_t>(nibble | bit << 4);
    }
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

// REQUIRES: type is quantized.
void UnpackBlock(DType type, const uint8_t* block, QuantBlock* out) {
  std::fill(std::begin(out->min), std::end(out->min), 0.0f);
  out->scale_values = type == DType::kQ6_K ? 16 : 32;
  out->scale[0] = HalfToFloat(Load16(block));
  switch (type) {
    case DType::kQ8_0:
      std::memcpy(out->quant, block + 2, 32);
      break;
    case DType::kQ4_0:
      UnpackNibbles(block + 2, 8, out->quant);
      break;
    case DType::kQ4_1:
      out->min[0] = HalfToFloat(Load16(block + 2));
      UnpackNibbles(block + 4, 0, out->quant);
      break;
    case DType::kQ4_K:
    case DType::kQ5_K:
      UnpackQ4KOrQ5K(type, block, out);
      break;
    case DType::kQ6_K:
      UnpackQ6K(block, out);
      break;
    default:
      break;
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
      out[begin + i] =
          std::fma(block.scale[i / block.scale_values],
                   static_cast<float>(block.quant[i]), block.min[i / 32]);
    }
  }
}

// Six bits each: the first four runs have theirs in the low bits of bytes 0-3
// (scales) and 4-7 (minima); of the others byte 8 + i has the low four bits,
// the high bits of bytes i and 4 + i the rest.
void UnpackScales6(const uint8_t* bytes, uint8_t* scales, uint8_t* mins) {
  for (int i = 0; i < 4; ++i) {
    scales[i] = bytes[i] & 63;
    mins[i] = bytes[4 + i] & 63;
    scales[4 + i] = (bytes[8 + i] & 15) | bytes[i] >> 6 << 4;
    mins[4 + i] = bytes[8 + i] >> 4 | bytes[4 + i] >> 6 << 4;
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
