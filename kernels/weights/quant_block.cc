#include "kernels/weights/quant_block.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

namespace lockstep::kernels {
namespace {

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

// Q5_0 and Q5_1: bit i of four bytes is the fifth of value i.
void AddFifthBits(const uint8_t* bytes, int offset, int8_t* quant) {
  uint32_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  for (int i = 0; i < 32; ++i) {
    quant[i] = static_cast<int8_t>((quant[i] | (bits >> i & 1) << 4) - offset);
  }
}

// Two bits of the values of Q2_K and Q3_K: 32 bytes hold four runs of 32.
int Pair(const uint8_t* pairs, int i) {
  return pairs[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
}

// Q2_K: 16 bytes of scales (low nibbles) and minima (high), 64 of pairs, d,
// dmin.
void UnpackQ2K(const uint8_t* block, QuantBlock* out) {
  const float d = HalfToFloat(Load16(block + 80));
  const float dmin = HalfToFloat(Load16(block + 82));
  for (int run = 0; run < 16; ++run) {
    out->scale[run] = d * (block[run] & 15);
    out->min[run] = -(dmin * (block[run] >> 4));
  }
  for (int i = 0; i < 256; ++i) {
    out->quant[i] = static_cast<int8_t>(Pair(block + 16, i));
  }
}

// Q3_K: 32 bytes of high bits (bit n for run n of 32 values; 4 is taken off
// where it is 0), 64 of pairs, 12 of scales, d.
void UnpackQ3K(const uint8_t* block, QuantBlock* out) {
  const float d = HalfToFloat(Load16(block + 108));
  int8_t scales[16];
  UnpackScalesQ3K(block + 96, scales);
  for (int run = 0; run < 16; ++run) out->scale[run] = d * scales[run];
  for (int i = 0; i < 256; ++i) {
    const int high = block[i % 32] >> (i / 32) & 1;
    out->quant[i] =
        static_cast<int8_t>(Pair(block + 32, i) - (high == 1 ? 0 : 4));
  }
}

constexpr int8_t kIq4Table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};
constexpr int8_t kMxfp4Table[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                    0, -1, -2, -3, -4, -6, -8, -12};

void UnpackTable(const uint8_t* nibbles, const int8_t* table, int8_t* quant) {
  UnpackNibbles(nibbles, 0, quant);
  for (int i = 0; i < 32; ++i) quant[i] = table[quant[i]];
}

// IQ4_XS: d, 16 bits with the upper two of each scale, 4 bytes with the lower
// four, 128 of nibbles.
void UnpackIq4Xs(const uint8_t* block, QuantBlock* out) {
  const float d = HalfToFloat(Load16(block));
  const uint16_t high = Load16(block + 2);
  for (int run = 0; run < 8; ++run) {
    const int low = block[4 + run / 2] >> (run % 2 * 4) & 15;
    out->scale[run] = d * ((low | (high >> (2 * run) & 3) << 4) - 32);
    UnpackTable(block + 8 + 16 * run, kIq4Table, out->quant + 32 * run);
  }
}

// 2^(e - 128), also where that is subnormal.
float Mxfp4Scale(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? uint32_t{0x00200000} << e
                                    : static_cast<uint32_t>(e - 1) << 23);
}

int ScaleValues(DType type) {
  return type == DType::kQ6_K || type == DType::kQ2_K || type == DType::kQ3_K
             ? 16
             : 32;
}

}  // namespace

void UnpackBlock(DType type, const uint8_t* block, QuantBlock* out) {
  std::fill(std::begin(out->min), std::end(out->min), 0.0f);
  out->scale_values = ScaleValues(type);
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
    case DType::kQ5_0:
      UnpackNibbles(block + 6, 0, out->quant);
      AddFifthBits(block + 2, 16, out->quant);
      break;
    case DType::kQ5_1:
      out->min[0] = HalfToFloat(Load16(block + 2));
      UnpackNibbles(block + 8, 0, out->quant);
      AddFifthBits(block + 4, 0, out->quant);
      break;
    case DType::kQ2_K:
      UnpackQ2K(block, out);
      break;
    case DType::kQ3_K:
      UnpackQ3K(block, out);
      break;
    case DType::kIQ4_NL:
      UnpackTable(block + 2, kIq4Table, out->quant);
      break;
    case DType::kIQ4_XS:
      UnpackIq4Xs(block, out);
      break;
    case DType::kMXFP4:
      out->scale[0] = Mxfp4Scale(block[0]);
      UnpackTable(block + 1, kMxfp4Table, out->quant);
      break;
    case DType::kQ4_Z:
      out->min[0] = -(out->scale[0] * block[2]);
      UnpackNibbles(block + 3, 0, out->quant);
      break;
    case DType::kQ8_F:
      std::memcpy(&out->scale[0], block, sizeof(float));
      std::memcpy(out->quant, block + sizeof(float), 32);
      break;
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8_E4M3:
    case DType::kI8:
    case DType::kI32:
    case DType::kI64:
      break;
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

// Byte j of the first eight has the low four bits of scales j and j + 8; byte
// 8 + j the upper two of scales j, j + 4, j + 8, j + 12.
void UnpackScalesQ3K(const uint8_t* bytes, int8_t* scales) {
  for (int i = 0; i < 16; ++i) {
    const int low = bytes[i % 8] >> (i / 8 * 4) & 15;
    const int high = bytes[8 + i % 4] >> (i / 4 * 2) & 3;
    scales[i] = static_cast<int8_t>((low | high << 4) - 32);
  }
}

}  // namespace lockstep::kernels
