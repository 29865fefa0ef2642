#include "tests/testing/encode_row.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace lockstep::testing {
namespace {

using kernels::DType;

template <typename T>
void Put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// value / scale as an integer from low to high.
int Quantize(float value, float scale, int low, int high) {
  if (scale == 0) return std::clamp(0, low, high);
  return std::clamp(static_cast<int>(std::nearbyint(value / scale)), low, high);
}

float LargestMagnitude(absl::Span<const float> values) {
  const auto less = [](float a, float b) { return std::abs(a) < std::abs(b); };
  return *std::max_element(values.begin(), values.end(), less);
}

// Value i lies in the low half of byte i, value i + 16 in the high one.
template <typename ToNibble>
void PutNibbles(std::string& out, absl::Span<const float> block,
                ToNibble to_nibble) {
  for (int i = 0; i < 16; ++i) {
    Put<uint8_t>(out, to_nibble(block[i]) | to_nibble(block[i + 16]) << 4);
  }
}

void PutQ8_0(std::string& out, absl::Span<const float> block) {
  const _Float16 scale = std::abs(LargestMagnitude(block)) / 127;
  Put(out, scale);
  for (const float value : block) {
    Put<int8_t>(out, Quantize(value, scale, -127, 127));
  }
}

void PutQ4_0(std::string& out, absl::Span<const float> block) {
  const _Float16 scale = LargestMagnitude(block) / -8;
  Put(out, scale);
  PutNibbles(out, block, [scale](float value) {
    return Quantize(value, scale, -8, 7) + 8;
  });
}

void PutQ4_1(std::string& out, absl::Span<const float> block) {
  const auto [least, most] = std::minmax_element(block.begin(), block.end());
  const _Float16 scale = (*most - *least) / 15;
  const _Float16 minimum = *least;
  Put(out, scale);
  Put(out, minimum);
  PutNibbles(out, block, [scale, minimum](float value) {
    return Quantize(value - minimum, scale, 0, 15);
  });
}

// ggml's block_q4_K and block_q5_K: d, dmin, 6-bit scales and minima, in q5_K
// the fifth bits, nibbles. Value i is in run i / 32.
void PutQ4KOrQ5K(DType type, std::string& out, absl::Span<const float> block) {
  const int most = type == DType::kQ5_K ? 31 : 15;
  float scale[8], min[8];
  for (int run = 0; run < 8; ++run) {
    const auto values = block.subspan(32 * run, 32);
    const auto [least, largest] =
        std::minmax_element(values.begin(), values.end());
    min[run] = std::max(0.0f, -*least);
    scale[run] = std::max(0.0f, *largest + min[run]) / most;
  }
  const _Float16 d = *std::max_element(scale, scale + 8) / 63;
  const _Float16 dmin = *std::max_element(min, min + 8) / 63;
  uint8_t scales[12] = {}, high[32] = {}, nibbles[128] = {};
  for (int run = 0; run < 8; ++run) {
    const int s = Quantize(scale[run], d, 0, 63);
    const int m = Quantize(min[run], dmin, 0, 63);
    if (run < 4) {
      scales[run] |= s;
      scales[4 + run] |= m;
    } else {
      scales[4 + run] = (s & 15) | (m & 15) << 4;
      scales[run - 4] |= s >> 4 << 6;
      scales[run] |= m >> 4 << 6;
    }
    for (int i = 0; i < 32; ++i) {
      const int q = Quantize(block[32 * run + i] + dmin * m, d * s, 0, most);
      nibbles[run / 2 * 32 + i] |= (q & 15) << (run % 2 * 4);
      high[i] |= q >> 4 << run;
    }
  }
  Put(out, d);
  Put(out, dmin);
  Put(out, scales);
  if (type == DType::kQ5_K) Put(out, high);
  Put(out, nibbles);
}

// ggml's block_q6_K: low four bits, high two bits, 16 scales, d. Value i is in
// half i / 128, there in row (i % 128) / 32 of 32 columns.
void PutQ6_K(std::string& out, absl::Span<const float> block) {
  uint8_t low[128] = {}, high[64] = {};
  int8_t scales[16];
  const _Float16 d = std::abs(LargestMagnitude(block)) / (32 * 127);
  for (int group = 0; group < 16; ++group) {
    const auto values = block.subspan(16 * group, 16);
    const float ideal = std::abs(LargestMagnitude(values)) / 31;
    scales[group] = Quantize(ideal, d, 1, 127);
  }
  for (int i = 0; i < 256; ++i) {
    const int q = Quantize(block[i], d * scales[i / 16], -32, 31) + 32;
    const int half = i / 128, row = i % 128 / 32, column = i % 32;
    low[64 * half + 32 * (row % 2) + column] |= (q & 15) << (4 * (row / 2));
    high[32 * half + column] |= (q >> 4) << (2 * row);
  }
  Put(out, low);
  Put(out, high);
  Put(out, scales);
  Put(out, d);
}

void PutBlock(DType type, std::string& out, absl::Span<const float> block) {
  switch (type) {
    case DType::kF32:
      return Put(out, block[0]);
    case DType::kF16:
      return Put(out, static_cast<_Float16>(block[0]));
    case DType::kBF16:
      return Put(out, ToBf16(block[0]));
    case DType::kQ8_0:
      return PutQ8_0(out, block);
    case DType::kQ4_0:
      return PutQ4_0(out, block);
    case DType::kQ4_1:
      return PutQ4_1(out, block);
    case DType::kQ4_K:
    case DType::kQ5_K:
      return PutQ4KOrQ5K(type, out, block);
    case DType::kQ6_K:
      return PutQ6_K(out, block);
    default:
      break;  // never written by a test
  }
  std::abort();
}

}  // namespace

std::string EncodeRow(DType type, absl::Span<const float> values) {
  const size_t block = kernels::BlockValues(type);
  std::string out;
  for (size_t i = 0; i < values.size(); i += block) {
    PutBlock(type, out, values.subspan(i, block));
  }
  return out;
}

}  // namespace lockstep::testing
