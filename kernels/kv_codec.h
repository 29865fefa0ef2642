#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/dtype.h"
#include "kernels/kv_type.h"

// How a vector of head_dim floats becomes a key or value of each KvType. Plain
// code, so that every instruction set stores the same bits.
namespace lockstep::kernels {

// Nearest, ties to even; a NaN stays one.
inline uint16_t BFloat16Of(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (x != x) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// The vector's largest magnitude over 127. 0 for a vector of zeros, and for one
// too small to divide by; NaN if a number is not finite, which so reaches
// whoever reads the vector.
inline float Int8Scale(const float* x, int count) {
  float largest = 0;
  bool finite = true;
  for (int i = 0; i < count; ++i) {
    const float magnitude = __builtin_fabsf(x[i]);
    finite &= magnitude <= std::numeric_limits<float>::max();
    largest = magnitude > largest ? magnitude : largest;
  }
  if (!finite) return std::numeric_limits<float>::quiet_NaN();
  return largest < 0x1p-100f ? 0 : largest / 127;
}

// round(x / scale), ties to even, by the reciprocal of a scale of Int8Scale: in
// [-127, 127].
inline int8_t Int8Of(float x, float inverse_scale) {
  constexpr float kRoundToInt = 0x1.8p23f;
  return static_cast<int8_t>(
      std::bit_cast<uint32_t>(x * inverse_scale + kRoundToInt));
}

// Writes vector x [count] of any of the types to out[0], out[stride], …;
// `scale` is written for kInt8 alone.
inline void EncodeKv(KvType type, const float* x, int count, void* out,
                     ptrdiff_t stride, float* scale) {
  switch (type) {
    case KvType::kF32: {
      float* to = static_cast<float*>(out);
      for (int i = 0; i < count; ++i) to[i * stride] = x[i];
      return;
    }
    case KvType::kBF16: {
      uint16_t* to = static_cast<uint16_t*>(out);
      for (int i = 0; i < count; ++i) to[i * stride] = BFloat16Of(x[i]);
      return;
    }
    case KvType::kInt8: {
      int8_t* to = static_cast<int8_t*>(out);
      *scale = Int8Scale(x, count);
      const float inverse = *scale > 0 ? 1 / *scale : 0;
      for (int i = 0; i < count; ++i) {
        to[i * stride] = *scale > 0 ? Int8Of(x[i], inverse) : 0;
      }
      return;
    }
  }
}

// Element `index` of what EncodeKv wrote; kInt8 without its scale.
inline float DecodeKv(KvType type, const void* data, size_t index) {
  switch (type) {
    case KvType::kF32:
      return static_cast<const float*>(data)[index];
    case KvType::kBF16:
      return BFloat16ToFloat(static_cast<const uint16_t*>(data)[index]);
    case KvType::kInt8:
      return static_cast<const int8_t*>(data)[index];
  }
  return 0;
}

}  // namespace lockstep::kernels
