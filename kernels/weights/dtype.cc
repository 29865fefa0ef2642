#include "kernels/weights/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/weights/quant_block.h"

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
    {"Q5_0", 32, 22},   {"Q5_1", 32, 24},   {"Q2_K", 256, 84},
    {"Q3_K", 256, 110}, {"IQ4_NL", 32, 18}, {"IQ4_XS", 256, 136},
    {"MXFP4", 32, 17},  {"Q4_Z", 32, 19},   {"Q8_F", 32, 36},
    {"F8_E4M3", 1, 1},  {"I8", 1, 1},       {"I32", 1, 4},
    {"I64", 1, 8},
};

const Format& FormatOf(DType type) {
  return kFormats[static_cast<uint8_t>(type)];
}

uint16_t Load16(const uint8_t* bytes) {
  uint16_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

template <typename Convert>
void DecodeHalves(const uint8_t* row, int64_t cols, Convert convert,
                  float* out) {
  for (int64_t i = 0; i < cols; ++i) out[i] = convert(Load16(row + 2 * i));
}

float Float8ToFloat(uint8_t bits) {
  const uint32_t magnitude = bits & 0x7f;
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24;
  if (magnitude == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000);
  // The bits moved into place read as value·2^-120, also when subnormal.
  const float value = std::bit_cast<float>(magnitude << 20) * 0x1p120f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

template <typename T>
void DecodeIntegers(const uint8_t* row, int64_t cols, float* out) {
  for (int64_t i = 0; i < cols; ++i) {
    T value;
    std::memcpy(&value, row + i * sizeof(T), sizeof(T));
    out[i] = static_cast<float>(value);
  }
}

void DecodeBlocks(DType type, const uint8_t* row, int64_t cols, float* out) {
  const int values = BlockValues(type);
  QuantBlock block;
  for (int64_t begin = 0; begin < cols; begin += values) {
    UnpackBlock(type, row, &block);
    row += BlockBytes(type);
    for (int i = 0; i < values; ++i) {
      const int run = i / block.scale_values;
      out[begin + i] = std::fma(
          block.scale[run], static_cast<float>(block.quant[i]), block.min[run]);
    }
  }
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
    case DType::kF8_E4M3:
      for (int64_t i = 0; i < cols; ++i) out[i] = Float8ToFloat(bytes[i]);
      return;
    case DType::kI8:
      return DecodeIntegers<int8_t>(bytes, cols, out);
    case DType::kI32:
      return DecodeIntegers<int32_t>(bytes, cols, out);
    case DType::kI64:
      return DecodeIntegers<int64_t>(bytes, cols, out);
    default:
      return DecodeBlocks(type, bytes, cols, out);
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

uint16_t FloatToHalf(float value) {
  return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}

}  // namespace lockstep::kernels
