#include "kernels/weights/encode_row.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace lockstep::kernels {
namespace {

constexpr int kBlock = 32;
constexpr uint16_t kHalfNaN = 0x7e00;

// The first of those of the largest magnitude; NaN if a value is not finite.
float Largest(const float* values) {
  float largest = 0;
  for (int i = 0; i < kBlock; ++i) {
    if (!std::isfinite(values[i])) return NAN;
    if (std::abs(values[i]) > std::abs(largest)) largest = values[i];
  }
  return largest;
}

// 0 where the inverse might not be finite; as a half, such a scale is 0.
float Inverse(float scale) { return std::abs(scale) < 1e-35f ? 0 : 1 / scale; }

void PutHalf(uint16_t half, uint8_t* out) {
  std::memcpy(out, &half, sizeof(half));
}

void EncodeQ8_0(const float* values, float largest, uint8_t* out) {
  const float scale = std::abs(largest) / 127;
  PutHalf(FloatToHalf(scale), out);
  const float inverse = Inverse(scale);
  for (int i = 0; i < kBlock; ++i) {
    out[2 + i] =
        static_cast<uint8_t>(static_cast<int>(std::round(values[i] * inverse)));
  }
}

void EncodeQ4_0(const float* values, float largest, uint8_t* out) {
  const float scale = largest / -8;
  PutHalf(FloatToHalf(scale), out);
  const float inverse = Inverse(scale);
  const auto nibble = [&](int i) {
    return std::min(15, static_cast<int>(std::fma(values[i], inverse, 8.5f)));
  };
  for (int i = 0; i < kBlock / 2; ++i) {
    out[2 + i] = static_cast<uint8_t>(nibble(i) | nibble(i + kBlock / 2) << 4);
  }
}

}  // namespace

void EncodeRow(DType type, const float* values, int64_t cols, uint8_t* out) {
  for (int64_t col = 0; col < cols; col += kBlock) {
    const float largest = Largest(values + col);
    if (std::isnan(largest)) {
      std::memset(out, 0, BlockBytes(type));
      PutHalf(kHalfNaN, out);
    } else if (type == DType::kQ8_0) {
      EncodeQ8_0(values + col, largest, out);
    } else {
      EncodeQ4_0(values + col, largest, out);
    }
    out += BlockBytes(type);
  }
}

}  // namespace lockstep::kernels
